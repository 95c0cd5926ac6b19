/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/ring_buffer.h>

#include "ferrule/platform/zephyr_status.h"
#include "uart.h"

LOG_MODULE_DECLARE(ferrule, CONFIG_FERRULE_LOG_LEVEL);

/* Called with the spin lock; returns whether any byte was moved. */
static bool receive(struct ferrule_zephyr_uart *uart)
{
	uint8_t *to = NULL;
	uint8_t lost;
	const uint32_t room = ring_buf_put_claim(&uart->input, &to, sizeof(uart->input_bytes));

	if (room == 0u) {
		uart->overrun = true;
		return uart_fifo_read(uart->device, &lost, 1) > 0;
	}

	const int count = uart_fifo_read(uart->device, to, (int)room);
	(void)ring_buf_put_finish(&uart->input, count > 0 ? (uint32_t)count : 0u);
	return count > 0;
}

/* Called with the spin lock; returns whether any byte was moved. */
static bool send(struct ferrule_zephyr_uart *uart)
{
	uint8_t *from = NULL;
	const uint32_t bytes = ring_buf_get_claim(&uart->output, &from, sizeof(uart->output_bytes));

	if (bytes == 0u) {
		uart_irq_tx_disable(uart->device);
		return false;
	}

	const int count = uart_fifo_fill(uart->device, from, (int)bytes);
	(void)ring_buf_get_finish(&uart->output, count > 0 ? (uint32_t)count : 0u);
	return count > 0;
}

static void on_interrupt(const struct device *device, void *context)
{
	struct ferrule_zephyr_uart *uart = context;
	bool received = false;
	bool sent = false;
	bool moved = true;
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);

	while (moved) {
		moved = false;
		(void)uart_irq_update(device); /* for drivers that read their status only once */
		if (uart_irq_rx_ready(device) > 0 && receive(uart)) {
			received = true;
			moved = true;
		}
		if (uart_irq_tx_ready(device) > 0 && send(uart)) {
			sent = true;
			moved = true;
		}
	}
	k_spin_unlock(&uart->lock, key);
	if (received) {
		k_sem_give(&uart->received);
	}
	if (sent) {
		k_sem_give(&uart->sent);
	}
}

/* A byte that arrived before the interrupt was enabled triggers no interrupt unless it is
 * level-sensitive, and in a UART that holds one byte it blocks all later ones.
 */
static void drop_stale(struct ferrule_zephyr_uart *uart)
{
	uint8_t stale;
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);

	for (size_t count = 0; count < sizeof(uart->input_bytes); count++) {
		if (uart_poll_in(uart->device, &stale) != 0) {
			break;
		}
	}
	ring_buf_reset(&uart->input);
	uart->overrun = false;
	k_spin_unlock(&uart->lock, key);
}

int32_t ferrule_uart_start(struct ferrule_zephyr_uart *uart)
{
	(void)memset(&uart->lock, 0, sizeof(uart->lock)); /* has no members on a single core */
	uart->overrun = false;
	ring_buf_init(&uart->input, sizeof(uart->input_bytes), uart->input_bytes);
	ring_buf_init(&uart->output, sizeof(uart->output_bytes), uart->output_bytes);
	(void)k_sem_init(&uart->received, 0u, 1u); /* fails only for a limit of 0 */
	(void)k_sem_init(&uart->sent, 0u, 1u);
	uart_irq_rx_disable(uart->device);
	uart_irq_tx_disable(uart->device);

	const int error = uart_irq_callback_user_data_set(uart->device, on_interrupt, uart);

	if (error != 0) {
		LOG_ERR("%s has no interrupts (error %d): set CONFIG_FERRULE_UART_POLLING",
			uart->device->name, error);
		return ferrule_zephyr_status(error);
	}
	uart_irq_rx_enable(uart->device);
	drop_stale(uart);
	return FERRULE_OK;
}

size_t ferrule_uart_get(struct ferrule_zephyr_uart *uart, uint8_t *data, size_t bytes,
			bool *overrun)
{
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);
	*overrun = uart->overrun;
	if (uart->overrun) {
		ring_buf_reset(&uart->input);
		uart->overrun = false;
	}

	const size_t count = ring_buf_get(&uart->input, data, (uint32_t)bytes);

	k_spin_unlock(&uart->lock, key);
	if (*overrun) {
		LOG_WRN("%s: received bytes were lost, the buffer was full", uart->device->name);
	}
	return count;
}

size_t ferrule_uart_put(struct ferrule_zephyr_uart *uart, const uint8_t *data, size_t bytes)
{
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);
	const size_t count = ring_buf_put(&uart->output, data, (uint32_t)bytes);

	k_spin_unlock(&uart->lock, key);
	uart_irq_tx_enable(uart->device); /* some drivers call on_interrupt() from here */
	return count;
}

bool ferrule_uart_is_sent(struct ferrule_zephyr_uart *uart)
{
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);
	const bool empty = ring_buf_is_empty(&uart->output);

	k_spin_unlock(&uart->lock, key);
	return empty;
}

void ferrule_uart_abandon(struct ferrule_zephyr_uart *uart)
{
	const k_spinlock_key_t key = k_spin_lock(&uart->lock);

	uart_irq_tx_disable(uart->device);
	ring_buf_reset(&uart->output);
	k_spin_unlock(&uart->lock, key);
}

bool ferrule_uart_wait_sent(struct ferrule_zephyr_uart *uart, k_timeout_t timeout)
{
	return k_sem_take(&uart->sent, timeout) == 0;
}

bool ferrule_zephyr_uart_wait(struct ferrule_zephyr_uart *uart, k_timeout_t timeout)
{
	return k_sem_take(&uart->received, timeout) == 0;
}
