/* SPDX-License-Identifier: Apache-2.0 */
/** @file Polling driver of the UARTE in Nordic's nRF52 (nRF52840 Product Specification, 6.34). It
 * transfers by DMA only; this driver uses transfers of one byte. */
#ifndef FERRULE_DRIVERS_UART_NRF_H
#define FERRULE_DRIVERS_UART_NRF_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory that the UARTE accesses by DMA. Must be in RAM while the UARTE is enabled. */
struct ferrule_uart_nrf_buffer {
    volatile uint8_t received;
    volatile uint8_t sent;
    bool sending; /* private to the driver: whether `sent` was ever passed to the UARTE */
};

struct ferrule_uart_nrf_config {
    uintptr_t base;                         /* address of the first task register */
    struct ferrule_uart_nrf_buffer *buffer; /* not shared with another UARTE */
    uint32_t baud; /* a standard rate, 9600 to 1000000 bits per second; 0 selects the maximum */
};

/**
 * @brief Set the baud rate and eight bits without parity, enable both directions and start
 * receiving the first byte. Before any other call, any thread; the pins must be selected beforehand
 * (PSEL).
 * @retval FERRULE_OK            ready
 * @retval FERRULE_ERR_ARGUMENT  `config` or its buffer is null, or the baud rate is not supported
 */
int32_t ferrule_uart_nrf_init(const struct ferrule_uart_nrf_config *config);

/**
 * @brief Return a received byte; never waits. One reader at a time. The UARTE buffers the few bytes
 * that arrive between calls.
 *
 * `config` is a const struct ferrule_uart_nrf_config, so this function can serve as `read_byte` of
 * a struct ferrule_link_port.
 * @retval 0..255  the byte
 * @retval -1      no byte is available
 */
int32_t ferrule_uart_nrf_read(void *config);

/** @brief Send a byte; waits while the previous one is being sent. One writer at a time. `config`
 * as in ferrule_uart_nrf_read(). */
void ferrule_uart_nrf_write(void *config, uint8_t byte);

/** @brief Return whether the transmitter can accept a byte immediately. `config` as in
 * ferrule_uart_nrf_read(). */
bool ferrule_uart_nrf_can_write(void *config);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_NRF_H */
