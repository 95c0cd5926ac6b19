/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A UART of Zephyr's as a ferrule/transport.h, for drivers of devices behind a wire, and as
 * the port of the link.
 *
 * Interrupts fill and empty ring buffers. With CONFIG_FERRULE_UART_POLLING threads ask the UART
 * instead, which loses bytes wherever the UART does not wait for its reader; it is for UARTs
 * without interrupts, such as native_sim's.
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_UART_H
#define FERRULE_PLATFORM_ZEPHYR_UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/ring_buffer.h>

#include "ferrule/link.h"
#include "ferrule/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The user's, static as a rule; all fields are the adapter's. For one reader and one writer. */
struct ferrule_zephyr_uart {
    const struct device *device;
#if !defined(CONFIG_FERRULE_UART_POLLING)
    struct k_sem received; /* there may be more to read */
    struct k_sem sent;     /* there may be more room */
    struct k_spinlock lock;
    struct ring_buf input;
    struct ring_buf output;
    uint8_t input_bytes[CONFIG_FERRULE_UART_RX_BYTES];
    uint8_t output_bytes[CONFIG_FERRULE_UART_TX_BYTES];
    bool overrun; /* input was lost since the last read */
#endif
};

/**
 * @brief Begin to use a UART, which from now on is this transport's alone. A thread.
 *
 * The transport's read returns FERRULE_ERR_DEVICE once where bytes came while as many were waiting
 * as CONFIG_FERRULE_UART_RX_BYTES says, and drops these: what follows would have a hole.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null
 * @retval FERRULE_ERR_UNAVAILABLE  the UART's driver is not ready
 * @retval FERRULE_ERR_UNSUPPORTED  it has no interrupts: CONFIG_FERRULE_UART_POLLING
 */
int32_t ferrule_zephyr_uart_transport(struct ferrule_zephyr_uart *uart, const struct device *device,
                                      struct ferrule_transport *transport);

/** @brief As ferrule_zephyr_uart_transport(), for the link; lost bytes are the link's to notice. */
int32_t ferrule_zephyr_uart_link(struct ferrule_zephyr_uart *uart, const struct device *device,
                                 struct ferrule_link_port *port);

/** @brief Wait until something may have come. Returns whether it did within the time. The reader's
 * thread. */
bool ferrule_zephyr_uart_wait(struct ferrule_zephyr_uart *uart, k_timeout_t timeout);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_UART_H */
