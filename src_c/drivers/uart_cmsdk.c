/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/drivers/uart_cmsdk.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define DATA    0x00u
#define STATE   0x04u
#define CTRL    0x08u
#define BAUDDIV 0x10u

#define STATE_TX_FULL    (1u << 0)
#define STATE_RX_FULL    (1u << 1)
#define CTRL_TX_ENABLE   (1u << 0)
#define CTRL_RX_ENABLE   (1u << 1)
#define BAUDDIV_SMALLEST 16u
#define BAUDDIV_LARGEST  ((1u << 20) - 1u)

int32_t ferrule_uart_cmsdk_init(const struct ferrule_uart_cmsdk_config *config)
{
    if (config == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    const uint32_t divider =
        config->baud == 0u ? BAUDDIV_SMALLEST : config->clock_hz / config->baud;
    if (divider < BAUDDIV_SMALLEST || divider > BAUDDIV_LARGEST) {
        return FERRULE_ERR_ARGUMENT;
    }
    ferrule_mmio_write32(config->base + BAUDDIV, divider);
    ferrule_mmio_write32(config->base + CTRL, CTRL_TX_ENABLE | CTRL_RX_ENABLE);
    return FERRULE_OK;
}

int32_t ferrule_uart_cmsdk_read(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_cmsdk_config *)config)->base;
    if ((ferrule_mmio_read32(base + STATE) & STATE_RX_FULL) == 0u) {
        return -1;
    }
    return (int32_t)(ferrule_mmio_read32(base + DATA) & 0xFFu);
}

bool ferrule_uart_cmsdk_can_write(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_cmsdk_config *)config)->base;
    return (ferrule_mmio_read32(base + STATE) & STATE_TX_FULL) == 0u;
}

void ferrule_uart_cmsdk_write(void *config, uint8_t byte)
{
    const uintptr_t base = ((const struct ferrule_uart_cmsdk_config *)config)->base;
    while (!ferrule_uart_cmsdk_can_write(config)) {
    }
    ferrule_mmio_write32(base + DATA, byte);
}
