/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A Zephyr UART as a transport (ferrule/transport.h) for drivers of serially attached
 * devices, and as the port of the link.
 *
 * Interrupts fill and empty ring buffers. With CONFIG_FERRULE_UART_POLLING, threads poll the UART
 * instead, which loses bytes unless the UART waits for its reader; polling is for UARTs without
 * interrupts, such as native_sim's.
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

/** One UART, owned by the user and usually static; all fields are private to the adapter. For one
 * reader and one writer.
 */
struct ferrule_zephyr_uart {
	const struct device *device;
#if !defined(CONFIG_FERRULE_UART_POLLING)
	struct k_sem received; /* more bytes may be available */
	struct k_sem sent;     /* more space may be available */
	struct k_spinlock lock;
	struct ring_buf input;
	struct ring_buf output;
	uint8_t input_bytes[CONFIG_FERRULE_UART_RX_BYTES];
	uint8_t output_bytes[CONFIG_FERRULE_UART_TX_BYTES];
	bool overrun; /* input was lost since the last read */
#endif
};

/**
 * @brief Start using a UART, which must not be used for anything else from then on. In a thread.
 *
 * If bytes arrive while CONFIG_FERRULE_UART_RX_BYTES bytes are waiting, the transport's read
 * returns FERRULE_ERR_DEVICE once and drops the waiting bytes, because the data would have a gap.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null
 * @retval FERRULE_ERR_UNAVAILABLE  the UART's driver is not ready
 * @retval FERRULE_ERR_UNSUPPORTED  it has no interrupts: use CONFIG_FERRULE_UART_POLLING
 */
int32_t ferrule_zephyr_uart_transport(struct ferrule_zephyr_uart *uart, const struct device *device,
				      struct ferrule_transport *transport);

/** @brief The same as ferrule_zephyr_uart_transport(), for the link, which detects lost bytes by
 * its checksums.
 */
int32_t ferrule_zephyr_uart_link(struct ferrule_zephyr_uart *uart, const struct device *device,
				 struct ferrule_link_port *port);

/** @brief Wait until bytes may have arrived; return false if the time expired. The reader's thread.
 */
bool ferrule_zephyr_uart_wait(struct ferrule_zephyr_uart *uart, k_timeout_t timeout);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_UART_H */
