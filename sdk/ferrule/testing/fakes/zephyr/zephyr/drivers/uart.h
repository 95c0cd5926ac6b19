/* SPDX-License-Identifier: Apache-2.0 */
/** @file The interrupt-driven and polling parts of Zephyr's UART API, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_DRIVERS_UART_H
#define FERRULE_FAKE_ZEPHYR_DRIVERS_UART_H

#include <zephyr/device.h>

typedef void (*uart_irq_callback_user_data_t)(const struct device *dev, void *user_data);

int uart_irq_callback_user_data_set(const struct device *dev, uart_irq_callback_user_data_t cb,
                                    void *user_data);
void uart_irq_rx_enable(const struct device *dev);
void uart_irq_rx_disable(const struct device *dev);
void uart_irq_tx_enable(const struct device *dev);
void uart_irq_tx_disable(const struct device *dev);
int uart_irq_update(const struct device *dev);
int uart_irq_is_pending(const struct device *dev);
int uart_irq_rx_ready(const struct device *dev);
int uart_irq_tx_ready(const struct device *dev);
int uart_irq_tx_complete(const struct device *dev);
int uart_fifo_read(const struct device *dev, uint8_t *rx_data, const int size);
int uart_fifo_fill(const struct device *dev, const uint8_t *tx_data, int size);
int uart_err_check(const struct device *dev);
int uart_poll_in(const struct device *dev, unsigned char *p_char);
void uart_poll_out(const struct device *dev, unsigned char out_char);

#endif /* FERRULE_FAKE_ZEPHYR_DRIVERS_UART_H */
