/* SPDX-License-Identifier: Apache-2.0 */
/** @file An implementation of ferrule/transport.h over a polling UART driver, for programs without
 * an operating system. Time is that of the port's clock; without one, it is measured in polls of
 * the UART. */
#ifndef FERRULE_DRIVERS_UART_TRANSPORT_H
#define FERRULE_DRIVERS_UART_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The minimum number of core cycles for one poll of a UART, on any Cortex-M. */
#define FERRULE_UART_LOOK_CYCLES 16u

/** One UART, owned by the user. The functions are those of a driver such as
 * ferrule/drivers/uart_cmsdk.h.
 */
struct ferrule_uart_transport {
    int32_t (*read_byte)(void *uart);             /* returns a byte, or -1 if none is available */
    bool (*can_write)(void *uart);                /* whether write_byte would not wait */
    void (*write_byte)(void *uart, uint8_t byte); /* called only when can_write is true */
    void *uart;                                   /* first argument of all three */
    uint32_t looks_per_ms; /* for ports without a clock: clock_hz / 1000 / FERRULE_UART_LOOK_CYCLES;
                              time-outs then last at least as long as requested, and several times
                              longer if polls are slower */
};

/** @brief The `write` function of a struct ferrule_transport; its context is a struct
 * ferrule_uart_transport.
 * @retval FERRULE_OK           all bytes were sent
 * @retval FERRULE_ERR_TIMEOUT  the transmitter accepted no byte for this long */
int32_t ferrule_uart_transport_write(void *context, const uint8_t *data, size_t bytes,
                                     uint32_t timeout_ms);

/** @brief The `read` function of a struct ferrule_transport. A time-out of 0 reads only bytes
 * already received.
 * @retval FERRULE_OK           all bytes were received
 * @retval FERRULE_ERR_TIMEOUT  only `*received` bytes arrived */
int32_t ferrule_uart_transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                                    size_t *received);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_TRANSPORT_H */
