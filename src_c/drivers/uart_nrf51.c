/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/drivers/uart_nrf51.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define TASKS_STARTRX 0x000u
#define TASKS_STARTTX 0x008u
#define EVENTS_RXDRDY 0x108u
#define EVENTS_TXDRDY 0x11Cu
#define ENABLE        0x500u
#define RXD           0x518u
#define TXD           0x51Cu
#define BAUDRATE      0x524u
#define CONFIG        0x56Cu
#define ENABLE_OFF    0u
#define ENABLE_UART   4u
#define CONFIG_8N1    0u /* without flow control */
#define LARGEST_BAUD  1000000u
#define CLOCK_HZ      16000000u

/* BAUDRATE is the baud rate times 2^32 / 16 MHz; the chip ignores the lower twelve bits, to which
 * it is rounded. */
static uint32_t speed_value(uint32_t baud)
{
    const uint32_t rate = baud == 0u ? LARGEST_BAUD : baud;
    uint32_t value = 0u;
    uint32_t rest = rate;
    if (rate > LARGEST_BAUD) {
        return 0u;
    }
    for (uint32_t bit = 0u; bit < 32u; bit++) { /* long division, without numbers of 64 bits */
        rest *= 2u;
        value = value << 1 | (rest >= CLOCK_HZ ? 1u : 0u);
        rest -= rest >= CLOCK_HZ ? CLOCK_HZ : 0u;
    }
    return (value + 0x800u) & ~0xFFFu;
}

int32_t ferrule_uart_nrf51_init(const struct ferrule_uart_nrf51_config *config)
{
    if (config == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    const uint32_t speed = speed_value(config->baud);
    if (speed == 0u) {
        return FERRULE_ERR_ARGUMENT;
    }
    const uintptr_t base = config->base;
    ferrule_mmio_write32(base + ENABLE, ENABLE_OFF);
    ferrule_mmio_write32(base + BAUDRATE, speed);
    ferrule_mmio_write32(base + CONFIG, CONFIG_8N1);
    ferrule_mmio_write32(base + EVENTS_RXDRDY, 0u);
    ferrule_mmio_write32(base + ENABLE, ENABLE_UART);
    ferrule_mmio_write32(base + TASKS_STARTRX, 1u);
    ferrule_mmio_write32(base + TASKS_STARTTX, 1u);
    return FERRULE_OK;
}

int32_t ferrule_uart_nrf51_read(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_nrf51_config *)config)->base;
    if (ferrule_mmio_read32(base + EVENTS_RXDRDY) == 0u) {
        return -1;
    }
    ferrule_mmio_write32(base + EVENTS_RXDRDY, 0u); /* before RXD, after which the next may come */
    return (int32_t)(ferrule_mmio_read32(base + RXD) & 0xFFu);
}

bool ferrule_uart_nrf51_can_write(void *config)
{
    (void)config;
    return true; /* a write returns when its byte has been sent */
}

void ferrule_uart_nrf51_write(void *config, uint8_t byte)
{
    const uintptr_t base = ((const struct ferrule_uart_nrf51_config *)config)->base;
    ferrule_mmio_write32(base + EVENTS_TXDRDY, 0u);
    ferrule_mmio_write32(base + TXD, byte);
    while (ferrule_mmio_read32(base + EVENTS_TXDRDY) == 0u) {
    }
}
