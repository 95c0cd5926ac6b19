/* SPDX-License-Identifier: Apache-2.0 */
/** @file The serial link through which a host drives a model in firmware; docs/link.md has the
 * protocol. */
#ifndef FERRULE_LINK_H
#define FERRULE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/counter.h"
#include "ferrule/executor.h"
#include "ferrule/frame.h"
#include "ferrule/identity.h"
#include "ferrule/stack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FERRULE_LINK_VERSION     1u    /* of the protocol */
#define FERRULE_LINK_MAX_PAYLOAD 1024u /* bytes of a frame's payload */
#define FERRULE_LINK_MAX_RANK    8u
#define FERRULE_LINK_MAX_NAME    255u /* bytes of a name on the wire; longer ones are cut */

#ifndef FERRULE_LINK_MODELS
/** 1 in a firmware whose link serves several models; a host then chooses one. */
#define FERRULE_LINK_MODELS 0
#endif

#ifndef FERRULE_LINK_STATE
/** 1 in a firmware whose link serves a model with state; a host then says which runs begin with a
 * reset. */
#define FERRULE_LINK_STATE 0
#endif

#ifndef FERRULE_LINK_STATISTICS
/** 1 in a firmware whose devices have counts of their own (`statistics` of struct ferrule_driver);
 * a host then reads them. */
#define FERRULE_LINK_STATISTICS 0
#endif

#if FERRULE_LINK_STATISTICS
#include "ferrule/driver.h"
#endif

/** Element types; the numbers are part of the protocol. */
enum ferrule_link_type {
    FERRULE_LINK_INT8 = 1,
    FERRULE_LINK_INT16 = 2,
    FERRULE_LINK_INT32 = 3,
    FERRULE_LINK_INT64 = 4,
    FERRULE_LINK_UINT8 = 5,
    FERRULE_LINK_BOOL = 6,
    FERRULE_LINK_FLOAT32 = 7,
    FERRULE_LINK_FLOAT16 = 8,
    FERRULE_LINK_UINT32 = 9,
    FERRULE_LINK_UINT64 = 10,
};

/** An input or output of the model. */
struct ferrule_link_tensor {
    const char *name;                      /* UTF-8 */
    void *data;                            /* inputs are written to and outputs read from here */
    uint32_t bytes;                        /* of `data` */
    uint32_t shape[FERRULE_LINK_MAX_RANK]; /* the first `rank` are used */
    uint8_t rank;                          /* 0 to FERRULE_LINK_MAX_RANK */
    uint8_t type;                          /* enum ferrule_link_type */
};

/** A device call in a run. */
struct ferrule_link_call {
    uint32_t index;  /* of the operator it belongs to */
    uint16_t device; /* its number */
    uint16_t call;   /* enum ferrule_device_call */
    int32_t status;  /* what it returned */
};

/** The description of the model for the link; generated, const. The host writes all inputs before
 * each run.
 */
struct ferrule_link_model {
    const char *firmware;                    /* name of the firmware */
    const char *firmware_version;            /* of the generator, for example "0.1.0" */
    const char *name;                        /* of the model */
    const char *input_hash;                  /* of the input of code generation; any text */
    const struct ferrule_identity *identity; /* NULL: unknown */
    const struct ferrule_link_tensor *inputs;
    const struct ferrule_link_tensor *outputs;
    uint32_t *counters;              /* operator_count entries that a profiled run fills */
    struct ferrule_link_call *calls; /* call_count entries that a traced run fills; NULL: none */
    int32_t (*run)(struct ferrule_run_info *info); /* runs on the data of `inputs` and `outputs` */
    uint32_t input_count;
    uint32_t output_count;
    uint32_t operator_count;
    uint32_t workspace_bytes;
    uint32_t call_count; /* maximum number of device calls in a run */
#if FERRULE_LINK_STATE
    int32_t (*reset)(void); /* writes the initial state; NULL: the model has none */
#endif
#if FERRULE_LINK_STATISTICS
    /* stores a count of the device of a number, as ferrule_device_statistic(); NULL: no devices */
    int32_t (*statistic)(uint32_t device, uint32_t index, struct ferrule_statistic *found);
#endif
};

/** The result of a run; kept so that a repeated request is answered without a second run. */
struct ferrule_link_result {
    uint64_t total; /* counted from call to return */
    struct ferrule_stack_use stack;
    int32_t status;
    uint32_t failed_operator;
    uint32_t calls;    /* entries of the model's `calls` that the run filled */
    uint16_t sequence; /* of the request */
    bool valid;        /* a run has finished since the last hello */
};

/** One end of a link; owned by the caller, its fields are private to link.c. */
struct ferrule_link {
    const struct ferrule_link_model *model; /* the chosen one */
#if FERRULE_LINK_MODELS
    const struct ferrule_link_model *const *models;
    uint32_t model_count;
#endif
    struct ferrule_frame_line line;
    struct ferrule_counter counter;
    struct ferrule_link_result result;
    bool greeted; /* a host has sent hello since the start */
    /* of `line`: header, payload, CRC */
    uint32_t frame[(FERRULE_FRAME_HEADER + FERRULE_LINK_MAX_PAYLOAD + FERRULE_FRAME_TRAILER) / 4u];
};

/** @brief Initialise `link` and start the counter. Before any other call, any thread. */
void ferrule_link_init(struct ferrule_link *link, const struct ferrule_link_model *model,
                       const struct ferrule_link_port *port);

#if FERRULE_LINK_MODELS
/** @brief Offer several models to the host; the first, which `link` has been initialised with, is
 * chosen after each hello. The array is not copied. After ferrule_link_init(), in its thread. */
void ferrule_link_offer(struct ferrule_link *link, const struct ferrule_link_model *const *models,
                        uint32_t count);
#endif

/**
 * @brief Read received bytes and answer at most one request, runs included. The thread of the link.
 * @retval true   a request was answered; more bytes may be available
 * @retval false  no bytes are left to read
 */
bool ferrule_link_poll(struct ferrule_link *link);

/** @brief Serve one model forever from static storage. The thread of the link; call it once. */
void ferrule_link_serve(const struct ferrule_link_model *model,
                        const struct ferrule_link_port *port);

#if FERRULE_LINK_STATE
/** @brief Run a model without a host, from its initial state if it has one.
 * @return what the model returns; FERRULE_OK is success */
static inline int32_t ferrule_link_run_first(const struct ferrule_link_model *model,
                                             struct ferrule_run_info *info)
{
    const int32_t status = model->reset == NULL ? 0 : model->reset();
    return status == 0 ? model->run(info) : status;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_LINK_H */
