/* SPDX-License-Identifier: Apache-2.0 */
/** @file Functions that uart_interrupt.c or uart_polling.c implements for uart.c. None of them
 * waits unless stated.
 */
#ifndef FERRULE_ZEPHYR_UART_H
#define FERRULE_ZEPHYR_UART_H

#include "ferrule/platform/zephyr_uart.h"
#include "ferrule/status.h"

/** @brief Prepare `uart`, whose `device` is set and ready. */
int32_t ferrule_uart_start(struct ferrule_zephyr_uart *uart);

/** @brief Read up to `bytes` received bytes and return their number. If bytes were lost before
 * them, set `*overrun` and drop the bytes received before the loss.
 */
size_t ferrule_uart_get(struct ferrule_zephyr_uart *uart, uint8_t *data, size_t bytes,
			bool *overrun);

/** @brief Pass as many bytes to the UART as it accepts, and return their number. */
size_t ferrule_uart_put(struct ferrule_zephyr_uart *uart, const uint8_t *data, size_t bytes);

/** @brief Return whether all bytes have been passed to the UART. */
bool ferrule_uart_is_sent(struct ferrule_zephyr_uart *uart);

/** @brief Drop the bytes that are not sent yet. */
void ferrule_uart_abandon(struct ferrule_zephyr_uart *uart);

/** @brief Wait until more bytes were sent; return false if the time expired. */
bool ferrule_uart_wait_sent(struct ferrule_zephyr_uart *uart, k_timeout_t timeout);

#endif /* FERRULE_ZEPHYR_UART_H */
