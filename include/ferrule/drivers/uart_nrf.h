/* SPDX-License-Identifier: Apache-2.0 */
/** @file Polling driver of the UARTE in Nordic's nRF52 (nRF52840 Product Specification, 6.34). It
 * has DMA only, here of one byte at a time. */
#ifndef FERRULE_DRIVERS_UART_NRF_H
#define FERRULE_DRIVERS_UART_NRF_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the UARTE reads and writes by itself. In RAM, as long as it is on. */
struct ferrule_uart_nrf_buffer {
    volatile uint8_t received;
    volatile uint8_t sent;
    bool sending; /* of the driver: whether `sent` was ever given to the UARTE */
};

struct ferrule_uart_nrf_config {
    uintptr_t base;                         /* address of its first task */
    struct ferrule_uart_nrf_buffer *buffer; /* of nobody else */
    uint32_t baud; /* 9600 to 1000000 bits per second, a usual one; 0 is the most */
};

/**
 * @brief Set the speed, eight bits without parity, switch both directions on and wait for the first
 * byte. Before any other call, any thread; pins are chosen already (PSEL).
 * @retval FERRULE_OK            ready
 * @retval FERRULE_ERR_ARGUMENT  `config` or its buffer is null, or it has no such speed
 */
int32_t ferrule_uart_nrf_init(const struct ferrule_uart_nrf_config *config);

/**
 * @brief Take a received byte; never waits. One reader at a time. The UARTE keeps the few bytes
 * that come until the next call.
 *
 * `config` is a const struct ferrule_uart_nrf_config, so that this can be the `read_byte` of a
 * struct ferrule_link_port.
 * @retval 0..255  the byte
 * @retval -1      there is none
 */
int32_t ferrule_uart_nrf_read(void *config);

/** @brief Send a byte; waits while the last one is under way. One writer at a time. `config` as in
 * the reader. */
void ferrule_uart_nrf_write(void *config, uint8_t byte);

/** @brief Whether the transmitter takes a byte at once. `config` as in the reader. */
bool ferrule_uart_nrf_can_write(void *config);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVERS_UART_NRF_H */
