/* SPDX-License-Identifier: Apache-2.0 */
/** @file What uart_interrupt.c or uart_polling.c gives to uart.c. None of it waits but where it
 * says so. */
#ifndef FERRULE_ZEPHYR_UART_H
#define FERRULE_ZEPHYR_UART_H

#include "ferrule/platform/zephyr_uart.h"
#include "ferrule/status.h"

/** @brief Prepare `uart`, whose `device` is set and ready. */
int32_t ferrule_uart_start(struct ferrule_zephyr_uart *uart);

/** @brief Take what has come, at most `bytes`; returns how many. Sets `*overrun` if bytes before
 * them were lost, and drops what had come until then. */
size_t ferrule_uart_get(struct ferrule_zephyr_uart *uart, uint8_t *data, size_t bytes,
                        bool *overrun);

/** @brief Give the UART as much as it takes; returns how many. */
size_t ferrule_uart_put(struct ferrule_zephyr_uart *uart, const uint8_t *data, size_t bytes);

/** @brief Whether all that was put has gone to the UART. */
bool ferrule_uart_is_sent(struct ferrule_zephyr_uart *uart);

/** @brief Drop what was put and is not sent. */
void ferrule_uart_abandon(struct ferrule_zephyr_uart *uart);

/** @brief Wait until more was sent; false if the time is over. */
bool ferrule_uart_wait_sent(struct ferrule_zephyr_uart *uart, k_timeout_t timeout);

#endif /* FERRULE_ZEPHYR_UART_H */
