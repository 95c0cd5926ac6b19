/* SPDX-License-Identifier: Apache-2.0 */
/** @file A ferrule/transport.h over a polling UART driver, for programs without an operating system
 * or a clock: time is counted in looks at the UART. */
#ifndef FERRULE_DRIVERS_UART_TRANSPORT_H
#define FERRULE_DRIVERS_UART_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Core cycles that a look at a UART takes at least, on any Cortex-M. */
#define FERRULE_UART_LOOK_CYCLES 16u

/** One UART; the user's. The functions are those of a driver such as ferrule/drivers/uart_cmsdk.h.
 */
struct ferrule_uart_transport {
    int32_t (*read_byte)(void *uart);             /* a byte, or -1 when there is none */
    bool (*can_write)(void *uart);                /* whether write_byte would not wait */
    void (*write_byte)(void *uart, uint8_t byte); /* called when can_write is true */
    void *uart;                                   /* first argument of the three */
    uint32_t looks_per_ms; /* clock_hz / 1000 / FERRULE_UART_LOOK_CYCLES: waits at least as long as
                              it is told, and some times longer where looks are slower */
};

/** @brief `write` of a struct ferrule_transport, whose context is a struct ferrule_uart_transport.
 * @retval FERRULE_OK           all bytes are sent
 * @retval FERRULE_ERR_TIMEOUT  the transmitter took no byte for so long */
int32_t ferrule_uart_transport_write(void *context, const uint8_t *data, size_t bytes,
                                     uint32_t timeout_ms);

/** @brief `read` of a struct ferrule_transport. A time-out of 0 takes what is there.
 * @retval FERRULE_OK           all bytes came
 * @retval FERRULE_ERR_TIMEOUT  `*received` of them came */
int32_t ferrule_uart_transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
                                    size_t *received);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_TRANSPORT_H */
