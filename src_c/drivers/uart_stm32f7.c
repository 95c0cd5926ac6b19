/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/drivers/uart_stm32f7.h"
#include "ferrule/port.h"
#include "ferrule/status.h"

#define CR1 0x00u
#define CR2 0x04u
#define CR3 0x08u
#define BRR 0x0Cu
#define ISR 0x1Cu
#define RDR 0x24u
#define TDR 0x28u

#define ISR_RX_FULL     (1u << 5)
#define ISR_TX_EMPTY    (1u << 7)
#define CR1_ENABLE      (1u << 0)
#define CR1_RX_ENABLE   (1u << 2)
#define CR1_TX_ENABLE   (1u << 3)
#define CR3_NO_OVERRUN  (1u << 12)
#define DIVIDER_LEAST   16u /* clock divided by baud rate: each bit has sixteen samples */
#define DIVIDER_LARGEST 0xFFFFu

int32_t ferrule_uart_stm32f7_init(const struct ferrule_uart_stm32f7_config *config)
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
    ferrule_mmio_write32(config->base + CR1,
                         0u); /* the others can be written only while it is off */
    ferrule_mmio_write32(config->base + CR2, 0u); /* one stop bit */
    /* No flow control, no DMA. An overrun loses a byte, and does not stop the receiver. */
    ferrule_mmio_write32(config->base + CR3, CR3_NO_OVERRUN);
    ferrule_mmio_write32(config->base + BRR, divider);
    ferrule_mmio_write32(config->base + CR1, CR1_ENABLE | CR1_TX_ENABLE | CR1_RX_ENABLE);
    return FERRULE_OK;
}

int32_t ferrule_uart_stm32f7_read(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32f7_config *)config)->base;
    if ((ferrule_mmio_read32(base + ISR) & ISR_RX_FULL) == 0u) {
        return -1;
    }
    return (int32_t)(ferrule_mmio_read32(base + RDR) & 0xFFu);
}

bool ferrule_uart_stm32f7_can_write(void *config)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32f7_config *)config)->base;
    return (ferrule_mmio_read32(base + ISR) & ISR_TX_EMPTY) != 0u;
}

void ferrule_uart_stm32f7_write(void *config, uint8_t byte)
{
    const uintptr_t base = ((const struct ferrule_uart_stm32f7_config *)config)->base;
    while (!ferrule_uart_stm32f7_can_write(config)) {
    }
    ferrule_mmio_write32(base + TDR, byte);
}
