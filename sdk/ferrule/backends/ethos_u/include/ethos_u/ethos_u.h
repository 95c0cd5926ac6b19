/* SPDX-License-Identifier: Apache-2.0 */
/** @file Running the command streams of Ethos-U55 and U65: the operators, which are the same with
 * every driver of the NPU, and what such a driver shares. */
#ifndef ETHOS_U_ETHOS_U_H
#define ETHOS_U_ETHOS_U_H

#include <stdbool.h>
#include <stdint.h>

#include "ethos_u/registers.h"
#include "ferrule/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Alignment of command streams, constants and scratch, in bytes. */
#define ETHOS_U_ALIGNMENT 16u

/** The bits of CONFIG in which an NPU must be the one that a stream was compiled for: the product,
 * the version of the stream, and the MACs. As in Arm's driver, the others may differ. */
#define ETHOS_U_CONFIG_BITS                                                                        \
    (ETHOS_U_CONFIG_PRODUCT_MASK | ETHOS_U_CONFIG_STREAM_VERSION_MASK |                            \
     ETHOS_U_CONFIG_MACS_LOG2_MASK)

/** The regions of memory to which a command stream refers. */
#define ETHOS_U_READ_ONLY    0u /* constants */
#define ETHOS_U_SCRATCH      1u
#define ETHOS_U_FAST_SCRATCH 2u /* the same memory as the scratch if the stream needs no own */
#define ETHOS_U_REGIONS      3u

/** The constant part of an operator. */
struct ethos_u_stream {
    const uint8_t *payload; /* the command stream with its header, as Vela writes it */
    uint32_t payload_bytes;
    const uint8_t *read_only; /* may be NULL if there are no bytes */
    uint32_t read_only_bytes;
    uint32_t scratch_bytes;
    uint32_t fast_scratch_bytes; /* 0 if the fast scratch is the scratch */
    uint32_t timeout_us;         /* limit of the wait for it, from when it is awaited on */
};

/** The command of a driver, which copies it: a stream with its memory, where the inputs are. */
struct ethos_u_work {
    const struct ethos_u_stream *stream;
    uint8_t *scratch;
    uint8_t *fast_scratch; /* NULL if the fast scratch is the scratch */
};

/** The header of a payload. */
struct ethos_u_header {
    const uint8_t *commands; /* the command stream itself */
    uint32_t command_bytes;
    uint32_t config; /* CONFIG of the NPU that it was compiled for */
    uint32_t id;     /* ID, likewise */
};

/** The driver of the NPU that is part of this program. */
extern const struct ferrule_driver ethos_u_driver;

/**
 * @brief Begin a stream and return at once; ferrule_device_finish() collects it. For operators: the
 * handle must be open. The scratch has the inputs at the stream's places, and gets the outputs.
 * @param resource_handle  the ferrule_device_t that ethos_u_driver is bound to
 * @param fast_scratch     NULL if the fast scratch is the scratch
 * @return as ferrule_device_submit()
 * @retval FERRULE_ERR_ARGUMENT     a required pointer is null or misaligned, or the payload is
 *                                  malformed
 * @retval FERRULE_ERR_UNSUPPORTED  the stream was compiled for another NPU
 */
int32_t ethos_u_start(void *resource_handle, const struct ethos_u_stream *stream, void *scratch,
                      void *fast_scratch);

/**
 * @brief Run a stream and wait until it is complete: ethos_u_start() and ferrule_device_finish().
 * @return as both
 * @retval FERRULE_ERR_TIMEOUT  the stream was not complete in time
 * @retval FERRULE_ERR_DEVICE   the device reported a failure or an inconsistent state
 *
 * After an error the device has been reset, and the contents of the scratch are undefined.
 */
int32_t ethos_u_execute(void *resource_handle, const struct ethos_u_stream *stream, void *scratch,
                        void *fast_scratch);

/* The rest is for drivers. */

/** @brief Read the header of a stream's payload.
 * @retval FERRULE_ERR_ARGUMENT  it is malformed */
int32_t ethos_u_read_header(const struct ethos_u_stream *stream, struct ethos_u_header *header);

/** @brief Return whether an NPU with these registers executes a stream with this header. */
bool ethos_u_is_compatible(const struct ethos_u_header *header, uint32_t config, uint32_t id);

/** @brief Return the core's address of a region; NULL for constants that the stream lacks. */
const uint8_t *ethos_u_region(const struct ethos_u_work *work, uint32_t region);

/** @brief Check the pointers of a command.
 * @retval FERRULE_ERR_ARGUMENT  one is null or misaligned */
int32_t ethos_u_check_work(const struct ethos_u_work *work);

#ifdef __cplusplus
}
#endif

#endif /* ETHOS_U_ETHOS_U_H */
