/* SPDX-License-Identifier: Apache-2.0 */
/** @file Polling driver of the USART in ST's STM32F0, F3, F7, G0, G4, H7 and L4 (RM0444). */
#ifndef FERRULE_DRIVERS_UART_STM32F7_H
#define FERRULE_DRIVERS_UART_STM32F7_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_uart_stm32f7_config {
    uintptr_t base;    /* address of the CR1 register */
    uint32_t clock_hz; /* of the USART's kernel clock, PCLK after reset */
    uint32_t baud;     /* bits per second, at most clock_hz / 16; 0 selects that maximum */
};

/**
 * @brief Set the baud rate and eight bits without parity, and enable both directions. Before any
 * other call, any thread; the USART's clock and pins must be set up beforehand.
 * @retval FERRULE_OK            ready
 * @retval FERRULE_ERR_ARGUMENT  `config` is null, or this clock cannot produce this baud rate
 */
int32_t ferrule_uart_stm32f7_init(const struct ferrule_uart_stm32f7_config *config);

/**
 * @brief Return a received byte; never waits. One reader at a time.
 *
 * `config` is a const struct ferrule_uart_stm32f7_config, so this function can serve as `read_byte`
 * of a struct ferrule_link_port.
 * @retval 0..255  the byte
 * @retval -1      no byte is available
 */
int32_t ferrule_uart_stm32f7_read(void *config);

/** @brief Send a byte; waits while the transmitter is full. One writer at a time. `config` as in
 * ferrule_uart_stm32f7_read(). */
void ferrule_uart_stm32f7_write(void *config, uint8_t byte);

/** @brief Return whether the transmitter can accept a byte immediately. `config` as in
 * ferrule_uart_stm32f7_read(). */
bool ferrule_uart_stm32f7_can_write(void *config);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_STM32F7_H */
