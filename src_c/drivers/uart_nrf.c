/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/drivers/uart_nrf.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define TASKS_STARTRX 0x000u
#define TASKS_STARTTX 0x008u
#define EVENTS_ENDRX  0x110u
#define EVENTS_ENDTX  0x120u
#define SHORTS        0x200u
#define ENABLE        0x500u
#define BAUDRATE      0x524u
#define RXD_PTR       0x534u
#define RXD_MAXCNT    0x538u
#define TXD_PTR       0x544u
#define TXD_MAXCNT    0x548u
#define CONFIG        0x56Cu
#define ENABLE_OFF    0u
#define ENABLE_UARTE  8u
#define CONFIG_8N1    0u /* without flow control */

struct speed {
    uint32_t baud;
    uint32_t value;
};

/* Values of BAUDRATE; the chip supports no others. */
static const struct speed speeds[] = {
    {1000000u, 0x10000000u}, {921600u, 0x0F000000u}, {460800u, 0x07400000u},
    {230400u, 0x03B00000u},  {115200u, 0x01D60000u}, {57600u, 0x00EB0000u},
    {38400u, 0x009D0000u},   {19200u, 0x004EA000u},  {9600u, 0x00275000u},
};

static uint32_t speed_value(uint32_t baud)
{
    if (baud == 0u) {
        return speeds[0].value;
    }
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
        if (speeds[i].baud == baud) {
            return speeds[i].value;
        }
    }
    return 0u;
}

int32_t ferrule_uart_nrf_init(const struct ferrule_uart_nrf_config *config)
{
    if (config == NULL || config->buffer == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    const uint32_t speed = speed_value(config->baud);
    if (speed == 0u) {
        return FERRULE_ERR_ARGUMENT;
    }
    const uintptr_t base = config->base;
    ferrule_mmio_write32(base + ENABLE, ENABLE_OFF);
    ferrule_mmio_write32(base + SHORTS, 0u);
    ferrule_mmio_write32(base + BAUDRATE, speed);
    ferrule_mmio_write32(base + CONFIG, CONFIG_8N1);
    ferrule_mmio_write32(base + RXD_PTR, ferrule_bus_address(&config->buffer->received));
    ferrule_mmio_write32(base + RXD_MAXCNT, 1u);
    ferrule_mmio_write32(base + TXD_PTR, ferrule_bus_address(&config->buffer->sent));
    ferrule_mmio_write32(base + TXD_MAXCNT, 1u);
    ferrule_mmio_write32(base + EVENTS_ENDRX, 0u);
    config->buffer->sending = false;
    ferrule_mmio_write32(base + ENABLE, ENABLE_UARTE);
    ferrule_mmio_write32(base + TASKS_STARTRX, 1u);
    return FERRULE_OK;
}

int32_t ferrule_uart_nrf_read(void *config)
{
    const struct ferrule_uart_nrf_config *self = config;
    if (ferrule_mmio_read32(self->base + EVENTS_ENDRX) == 0u) {
        return -1;
    }
    ferrule_port_barrier();
    const uint8_t byte = self->buffer->received;
    ferrule_mmio_write32(self->base + EVENTS_ENDRX, 0u);
    ferrule_mmio_write32(self->base + TASKS_STARTRX, 1u);
    return byte;
}

bool ferrule_uart_nrf_can_write(void *config)
{
    const struct ferrule_uart_nrf_config *self = config;
    return !self->buffer->sending || ferrule_mmio_read32(self->base + EVENTS_ENDTX) != 0u;
}

void ferrule_uart_nrf_write(void *config, uint8_t byte)
{
    const struct ferrule_uart_nrf_config *self = config;
    while (!ferrule_uart_nrf_can_write(config)) {
    }
    self->buffer->sent = byte;
    self->buffer->sending = true;
    ferrule_port_barrier();
    ferrule_mmio_write32(self->base + EVENTS_ENDTX, 0u);
    ferrule_mmio_write32(self->base + TASKS_STARTTX, 1u);
}
