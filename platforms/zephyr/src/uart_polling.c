/* SPDX-License-Identifier: Apache-2.0 */
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "uart.h"

#define PAUSE_MS 1

int32_t ferrule_uart_start(struct ferrule_zephyr_uart *uart)
{
	(void)uart; /* polling needs no preparation */
	return FERRULE_OK;
}

/* Bytes lost by the UART itself are not reported. */
size_t ferrule_uart_get(struct ferrule_zephyr_uart *uart, uint8_t *data, size_t bytes,
			bool *overrun)
{
	size_t count = 0;
	*overrun = false;
	while (count < bytes && uart_poll_in(uart->device, &data[count]) == 0) {
		count++;
	}
	return count;
}

/* Sends one byte only, because uart_poll_out() waits until the UART accepts it, and the caller
 * checks the time.
 */
size_t ferrule_uart_put(struct ferrule_zephyr_uart *uart, const uint8_t *data, size_t bytes)
{
	if (bytes == 0u) {
		return 0u;
	}
	uart_poll_out(uart->device, data[0]);
	return 1u;
}

bool ferrule_uart_is_sent(struct ferrule_zephyr_uart *uart)
{
	(void)uart;
	return true;
}

void ferrule_uart_abandon(struct ferrule_zephyr_uart *uart)
{
	(void)uart; /* no bytes are buffered */
}

/* uart_poll_out() has already waited. */
bool ferrule_uart_wait_sent(struct ferrule_zephyr_uart *uart, k_timeout_t timeout)
{
	(void)uart;
	return !K_TIMEOUT_EQ(timeout, K_NO_WAIT);
}

bool ferrule_zephyr_uart_wait(struct ferrule_zephyr_uart *uart, k_timeout_t timeout)
{
	(void)uart;
	if (K_TIMEOUT_EQ(timeout, K_NO_WAIT)) {
		return false;
	}
	(void)k_sleep(K_MSEC(PAUSE_MS));
	return true;
}
