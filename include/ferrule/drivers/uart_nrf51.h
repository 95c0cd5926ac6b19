/* SPDX-License-Identifier: Apache-2.0 */
/** @file Polling driver of the UART in Nordic's nRF51 (nRF51 Series Reference Manual), which has no
 * DMA. */
#ifndef FERRULE_DRIVERS_UART_NRF51_H
#define FERRULE_DRIVERS_UART_NRF51_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_uart_nrf51_config {
    uintptr_t base; /* address of the first task register */
    uint32_t baud;  /* 977 to 1000000 bits per second; 0 selects the maximum */
};

/**
 * @brief Set the baud rate and eight bits without parity, and start both directions. Before any
 * other call, any thread; the pins must be selected beforehand (PSEL).
 * @retval FERRULE_OK            ready
 * @retval FERRULE_ERR_ARGUMENT  `config` is null, or the baud rate is not supported
 */
int32_t ferrule_uart_nrf51_init(const struct ferrule_uart_nrf51_config *config);

/**
 * @brief Return a received byte; never waits. One reader at a time. The UART buffers the few bytes
 * that arrive between calls.
 *
 * `config` is a const struct ferrule_uart_nrf51_config, so this function can serve as `read_byte`
 * of a struct ferrule_link_port.
 * @retval 0..255  the byte
 * @retval -1      no byte is available
 */
int32_t ferrule_uart_nrf51_read(void *config);

/** @brief Send a byte; waits until it has been sent. One writer at a time. `config` as in
 * ferrule_uart_nrf51_read(). */
void ferrule_uart_nrf51_write(void *config, uint8_t byte);

/** @brief Return whether the transmitter can accept a byte immediately, which it always can between
 * writes. `config` as in ferrule_uart_nrf51_read(). */
bool ferrule_uart_nrf51_can_write(void *config);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_NRF51_H */
