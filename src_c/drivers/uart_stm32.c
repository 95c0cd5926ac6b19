/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/drivers/uart_stm32.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define SR  0x00u
#define DR  0x04u
#define BRR 0x08u
#define CR1 0x0Cu
#define CR2 0x10u
#define CR3 0x14u

#define SR_RX_FULL      (1u << 5)
#define SR_TX_EMPTY     (1u << 7)
#define CR1_RX_ENABLE   (1u << 2)
#define CR1_TX_ENABLE   (1u << 3)
#define CR1_ENABLE      (1u << 13)
#define DIVIDER_LEAST   16u /* clock divided by baud rate: each bit has sixteen samples */
#define DIVIDER_LARGEST 0xFFFFu

int32_t ferrule_uart_stm32_init(const struct ferrule_uart_stm32_config *config)
{
    if (config == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    uint32_t divider = DIVIDER_LEAST;
    if (config->baud != 0u) {
        const uint32_t rest = config->clock_hz % config->baud;
        divider = config->clock_hz / config->baud + (rest >= config->baud - rest ? 1u : 0u);
    }
    if (divider < DIVIDER_LEAST || divider > DIVIDER_LARGEST) {
        return FERRULE_ERR_ARGUMENT;
    }
    ferrule_mmio_write32(config->base + CR1, CR1_ENABLE);
    ferrule_mmio_write32(config->base + CR2, 0u); /* one stop bit */
    ferrule_mmio_write32(config->base + CR3, 0u); /* no flow control, no DMA */
    ferrule_mmio_write32(config->base + BRR, divider);
    ferrule_mmio_write32(config->base + CR1, CR1_ENABLE | CR1_TX_ENABLE | CR1_RX_ENABLE);
    return FERRULE_OK;
}

int32_t ferrule_uart_stm32_read(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32_config *)config)->base;
    if ((ferrule_mmio_read32(base + SR) & SR_RX_FULL) == 0u) {
        return -1;
    }
    return (int32_t)(ferrule_mmio_read32(base + DR) & 0xFFu); /* also clears an overrun */
}

bool ferrule_uart_stm32_can_write(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32_config *)config)->base;
    return (ferrule_mmio_read32(base + SR) & SR_TX_EMPTY) != 0u;
}

void ferrule_uart_stm32_write(void *config, uint8_t byte)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32_config *)config)->base;
    while (!ferrule_uart_stm32_can_write(config)) {
    }
    ferrule_mmio_write32(base + DR, byte);
}
