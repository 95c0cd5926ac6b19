/* SPDX-License-Identifier: Apache-2.0 */
#include "uart.h"

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

LOG_MODULE_DECLARE(ferrule, CONFIG_FERRULE_LOG_LEVEL);

static int32_t start(struct ferrule_zephyr_uart *uart, const struct device *device)
{
	if (!device_is_ready(device)) {
		LOG_ERR("%s is not ready", device->name);
		return FERRULE_ERR_UNAVAILABLE;
	}
	uart->device = device;
	return ferrule_uart_start(uart);
}

static int32_t transport_write(void *context, const uint8_t *data, size_t bytes,
			       uint32_t timeout_ms)
{
	struct ferrule_zephyr_uart *uart = context;
	const k_timepoint_t end = sys_timepoint_calc(K_MSEC((int64_t)timeout_ms));
	size_t done = 0;

	for (;;) {
		done += ferrule_uart_put(uart, data + done, bytes - done);
		if (done == bytes && ferrule_uart_is_sent(uart)) {
			return FERRULE_OK;
		}
		if (!ferrule_uart_wait_sent(uart, sys_timepoint_timeout(end))) {
			ferrule_uart_abandon(uart);
			return FERRULE_ERR_TIMEOUT;
		}
	}
}

static int32_t transport_read(void *context, uint8_t *data, size_t bytes, uint32_t timeout_ms,
			      size_t *received)
{
	struct ferrule_zephyr_uart *uart = context;
	const k_timepoint_t end = sys_timepoint_calc(K_MSEC((int64_t)timeout_ms));
	bool overrun = false;
	*received = 0;
	for (;;) {
		*received += ferrule_uart_get(uart, data + *received, bytes - *received, &overrun);
		if (overrun) {
			return FERRULE_ERR_DEVICE;
		}
		if (*received == bytes) {
			return FERRULE_OK;
		}
		if (!ferrule_zephyr_uart_wait(uart, sys_timepoint_timeout(end))) {
			return FERRULE_ERR_TIMEOUT;
		}
	}
}

static int32_t read_byte(void *context)
{
	uint8_t byte;
	bool overrun = false; /* the link detects missing bytes by the CRC */

	return ferrule_uart_get(context, &byte, 1u, &overrun) == 1u ? (int32_t)byte : -1;
}

static void write_byte(void *context, uint8_t byte)
{
	while (ferrule_uart_put(context, &byte, 1u) == 0u) {
		(void)ferrule_uart_wait_sent(context, K_FOREVER); /* try again either way */
	}
}

int32_t ferrule_zephyr_uart_transport(struct ferrule_zephyr_uart *uart, const struct device *device,
				      struct ferrule_transport *transport)
{
	if (uart == NULL || device == NULL || transport == NULL) {
		return FERRULE_ERR_ARGUMENT;
	}
	transport->write = transport_write;
	transport->read = transport_read;
	transport->context = uart;
	return start(uart, device);
}

int32_t ferrule_zephyr_uart_link(struct ferrule_zephyr_uart *uart, const struct device *device,
				 struct ferrule_link_port *port)
{
	if (uart == NULL || device == NULL || port == NULL) {
		return FERRULE_ERR_ARGUMENT;
	}
	port->read_byte = read_byte;
	port->write_byte = write_byte;
	port->context = uart;
	return start(uart, device);
}
