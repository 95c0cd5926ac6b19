/* SPDX-License-Identifier: Apache-2.0 */
/* The UARTE of Nordic's nRF52 (nRF52840 Product Specification, 6.34), which transfers bytes by DMA;
 * its only interrupt line is transmit_line of struct ferrule_uart. */
#ifndef FERRULE_EMULATION_UART_NRF_H
#define FERRULE_EMULATION_UART_NRF_H

#include "uart.h"

/* As the functions of uart.h; `uart` is a struct ferrule_uart. */
void ferrule_uart_nrf_reset(struct ferrule_uart *uart);
void ferrule_uart_nrf_update(struct ferrule_uart *uart);
uint64_t ferrule_uart_nrf_read(void *engine, uint64_t offset, unsigned bytes, void *uart);
void ferrule_uart_nrf_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                            void *uart);

#endif
