/* SPDX-License-Identifier: Apache-2.0 */
/* Shared code of the test firmwares; UART_BASE is defined on the compiler's command line. */
#ifndef GUEST_H
#define GUEST_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define CYCCNT            0xE0001004u

int main(void);

static inline void start_uart(void)
{
    REGISTER(UART_BASE + 0x10u) = 16;
    REGISTER(UART_BASE + 0x08u) = 3;
}

static inline void put(uint8_t byte)
{
    while ((REGISTER(UART_BASE + 4u) & 1u) != 0) {
    }
    REGISTER(UART_BASE) = byte;
}

static inline uint8_t get(void)
{
    while ((REGISTER(UART_BASE + 4u) & 2u) == 0) {
    }
    return (uint8_t)REGISTER(UART_BASE);
}

static inline void put_word(uint32_t word)
{
    for (int i = 0; i < 4; ++i) {
        put((uint8_t)(word >> (8 * i)));
    }
}

static inline void start_cycle_counter(void)
{
    REGISTER(0xE000EDFCu) |= 1u << 24;
    REGISTER(0xE0001000u) |= 1u;
}

#endif
