/* SPDX-License-Identifier: Apache-2.0 */
/* The USART of ST's STM32F7 and G0 (RM0444) as a UART with eight data bits and no
 * FIFO; its only interrupt line is transmit_line of struct ferrule_uart. */
#ifndef FERRULE_EMULATION_UART_STM32F7_H
#define FERRULE_EMULATION_UART_STM32F7_H

#include "uart.h"

/* As the functions of uart.h; `uart` is a struct ferrule_uart. */
void ferrule_uart_stm32f7_reset(struct ferrule_uart *uart);
void ferrule_uart_stm32f7_update(struct ferrule_uart *uart);
uint64_t ferrule_uart_stm32f7_read(void *engine, uint64_t offset, unsigned bytes, void *uart);
void ferrule_uart_stm32f7_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                void *uart);

#endif
