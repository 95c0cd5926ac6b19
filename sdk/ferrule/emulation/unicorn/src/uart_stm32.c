/* SPDX-License-Identifier: Apache-2.0 */
#include "uart_stm32.h"

enum {
    USART_SR = 0x00,
    USART_DR = 0x04,
    USART_BRR = 0x08,
    USART_CR1 = 0x0C,
    USART_CR2 = 0x10,
    USART_CR3 = 0x14,
    USART_GTPR = 0x18,
};

enum {
    SR_RX_FULL = 1 << 5,
    SR_TX_COMPLETE = 1 << 6,
    SR_TX_EMPTY = 1 << 7,
    CR1_RX_ENABLE = 1 << 2,
    CR1_TX_ENABLE = 1 << 3,
    CR1_ENABLE = 1 << 13,
    CR1_MASK = 0xBFFF, /* bit 14 is reserved */
    BRR_MASK = 0xFFFF,
    BRR_LEAST = 16,
    HALF_MASK = 0xFFFF,
};

/* The interrupt enables of CR1 (RXNEIE, TCIE, TXEIE) have the positions of their flags in SR. */
enum { CR1_INTERRUPTS = SR_RX_FULL | SR_TX_COMPLETE | SR_TX_EMPTY };

enum { WORD_CR2, WORD_CR3, WORD_GTPR };

static uint32_t flags(const struct ferrule_uart *uart)
{
    uint32_t found = uart->state; /* TC, which software may clear */
    if (ferrule_uart_has_input(uart)) {
        found |= SR_RX_FULL;
    }
    if (!ferrule_uart_is_full(uart)) {
        found |= SR_TX_EMPTY;
    }
    return found;
}

static uint32_t read_status(struct ferrule_uart *uart)
{
    if (!ferrule_uart_has_input(uart)) {
        ferrule_uart_note_poll(uart);
    }
    return flags(uart);
}

static void transmit(struct ferrule_uart *uart, uint8_t byte)
{
    const uint32_t on = CR1_ENABLE | CR1_TX_ENABLE;
    uart->polls = 0;
    if ((uart->control & on) != on || uart->baud_divider < BRR_LEAST ||
        ferrule_uart_is_full(uart)) {
        ++uart->output_lost;
        return;
    }
    uart->state |= SR_TX_COMPLETE;
    ferrule_uart_send(uart, byte);
}

static void set_control(struct ferrule_uart *uart, uint32_t word)
{
    const uint32_t on = CR1_ENABLE | CR1_RX_ENABLE;
    uart->control = word & CR1_MASK;
    uart->receives = (word & on) == on ? 1u : 0u;
}

void ferrule_uart_stm32_reset(struct ferrule_uart *uart)
{
    uart->state = SR_TX_COMPLETE;
}

void ferrule_uart_stm32_update(struct ferrule_uart *uart)
{
    uint32_t level = 0;
    if ((uart->control & CR1_ENABLE) != 0) {
        level = uart->control & CR1_INTERRUPTS & flags(uart);
    }
    ferrule_uart_drive(uart, uart->transmit_line, level);
}

uint64_t ferrule_uart_stm32_read(void *engine, uint64_t offset, unsigned bytes, void *uart)
{
    struct ferrule_uart *self = uart;
    uint32_t data;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case USART_SR:
        return read_status(self);
    case USART_DR:
        data = ferrule_uart_has_input(self) ? ferrule_uart_take(self) : 0u;
        ferrule_uart_stm32_update(self);
        return data;
    case USART_BRR:
        return self->baud_divider;
    case USART_CR1:
        return self->control;
    case USART_CR2:
        return self->words[WORD_CR2];
    case USART_CR3:
        return self->words[WORD_CR3];
    case USART_GTPR:
        return self->words[WORD_GTPR];
    default:
        return 0;
    }
}

void ferrule_uart_stm32_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                              void *uart)
{
    struct ferrule_uart *self = uart;
    const uint32_t word = (uint32_t)value;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case USART_SR:
        self->state &= word | ~(uint32_t)SR_TX_COMPLETE; /* cleared by writing 0 */
        break;
    case USART_DR:
        transmit(self, (uint8_t)word);
        break;
    case USART_BRR:
        self->baud_divider = word & BRR_MASK;
        break;
    case USART_CR1:
        set_control(self, word);
        break;
    case USART_CR2:
        self->words[WORD_CR2] = word & HALF_MASK;
        break;
    case USART_CR3:
        self->words[WORD_CR3] = word & HALF_MASK;
        break;
    case USART_GTPR:
        self->words[WORD_GTPR] = word & HALF_MASK;
        break;
    default:
        break;
    }
    ferrule_uart_stm32_update(self);
}
