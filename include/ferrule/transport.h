/* SPDX-License-Identifier: Apache-2.0 */
/** @file A byte stream to a device on a serial connection, such as a UART. Adapters implement it
 * with the platform's driver; Ferrule's drivers use it. */
#ifndef FERRULE_TRANSPORT_H
#define FERRULE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Both functions are called in a thread, by one caller at a time. */
struct ferrule_transport {
    /** Send all bytes within the time; returns FERRULE_OK, FERRULE_ERR_TIMEOUT or
     * FERRULE_ERR_DEVICE. */
    int32_t (*write)(void *context, const uint8_t *data, size_t bytes, uint32_t timeout_ms);
    /** Receive exactly `bytes` bytes within the time; on FERRULE_ERR_TIMEOUT, `*received` is the
     * number that arrived. */
    int32_t (*read)(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                    size_t *received);
    void *context; /* first argument of both functions */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_TRANSPORT_H */
