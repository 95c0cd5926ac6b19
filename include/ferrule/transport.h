/* SPDX-License-Identifier: Apache-2.0 */
/** @file A stream of bytes to a device that is reached over a wire, such as a UART. Adapters make
 * one of the platform's driver; drivers use it. */
#ifndef FERRULE_TRANSPORT_H
#define FERRULE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Both functions are called in a thread, by one caller at a time. */
struct ferrule_transport {
    /** Send all bytes within the time; FERRULE_OK, FERRULE_ERR_TIMEOUT or FERRULE_ERR_DEVICE. */
    int32_t (*write)(void *context, const uint8_t *data, size_t bytes, uint32_t timeout_ms);
    /** Receive exactly so many bytes within the time; on FERRULE_ERR_TIMEOUT `*received` has how
     * many came. */
    int32_t (*read)(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                    size_t *received);
    void *context; /* first argument of both */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_TRANSPORT_H */
