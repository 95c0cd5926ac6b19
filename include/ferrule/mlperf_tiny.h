/* SPDX-License-Identifier: Apache-2.0 */
/** @file The device's side of MLPerf Tiny's serial protocol, by which the benchmark's runner loads
 * an input, times inferences and reads results; docs/mlperf_tiny.md has the commands. */
#ifndef FERRULE_MLPERF_TINY_H
#define FERRULE_MLPERF_TINY_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/counter.h"
#include "ferrule/frame.h"
#include "ferrule/link.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_MLPERF_TINY_COMMAND 80u /* characters of a command; longer ones are cut */

/** What the bytes that the runner sends are. */
enum ferrule_mlperf_tiny_input {
    FERRULE_MLPERF_TINY_AS_IS = 0,  /* the model's input, byte by byte */
    FERRULE_MLPERF_TINY_UINT8 = 1,  /* 0 to 255, for an int8 input that is 128 less */
    FERRULE_MLPERF_TINY_FLOAT32 = 2 /* little-endian, to be quantised to int8 on the device */
};

/** What the results are. */
enum ferrule_mlperf_tiny_result {
    FERRULE_MLPERF_TINY_VALUES = 0, /* the dequantised output */
    FERRULE_MLPERF_TINY_ERROR = 1   /* the mean squared difference of output and float32 input */
};

/** The description of a benchmark for its model; const. */
struct ferrule_mlperf_tiny_config {
    const struct ferrule_link_model *model; /* with one input, and an int8 or float32 output */
    const struct ferrule_link_port *port;   /* the serial line to the runner */
    const char *benchmark;                  /* its name in the runner's scripts, such as kws01 */
    const char *vendor;                     /* the answer to `name`; any text without ']' */
    uint8_t *received;                      /* the input as the runner sends it, aligned to 4 */
    int8_t *quantized;                    /* as many elements as the input for FLOAT32; else NULL */
    uint32_t received_bytes;              /* of `received` */
    uint32_t cycles_per_us;               /* of the core's clock; at least 1 */
    enum ferrule_mlperf_tiny_input input; /* how `received` becomes the model's input */
    enum ferrule_mlperf_tiny_result result; /* what `results` prints */
    float input_scale;                      /* for FLOAT32; above 0 */
    int32_t input_zero_point;               /* for FLOAT32 */
    float output_scale;                     /* of an int8 output; above 0 */
    int32_t output_zero_point;              /* of an int8 output */
};

/** The state of the protocol; owned by the caller, its fields are private to mlperf_tiny.c. */
struct ferrule_mlperf_tiny {
    const struct ferrule_mlperf_tiny_config *config;
    struct ferrule_counter counter;
    uint64_t counted;  /* cycles that `now_us` includes */
    uint32_t now_us;   /* since the start; wraps after 71 minutes, as the runner expects */
    uint32_t rest;     /* cycles of an incomplete microsecond */
    uint32_t expected; /* bytes of the input that is being loaded */
    uint32_t loaded;   /* bytes of it that have come */
    bool converted;    /* `received` has become the model's input */
    uint32_t length;   /* characters in `command` */
    char command[FERRULE_MLPERF_TINY_COMMAND + 1u];
};

/** @brief Start the clock and greet the runner. Before any other call, in the thread of the line.
 */
void ferrule_mlperf_tiny_init(struct ferrule_mlperf_tiny *runner,
                              const struct ferrule_mlperf_tiny_config *config);

/**
 * @brief Read received bytes and answer at most one command, inferences included. The same thread.
 * @retval true   a command was answered; more bytes may be available
 * @retval false  no bytes are left to read
 */
bool ferrule_mlperf_tiny_poll(struct ferrule_mlperf_tiny *runner);

/** @brief Serve the runner forever from static storage; call it once. */
void ferrule_mlperf_tiny_serve(const struct ferrule_mlperf_tiny_config *config);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_MLPERF_TINY_H */
