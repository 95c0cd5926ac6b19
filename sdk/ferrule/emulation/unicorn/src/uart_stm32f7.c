/* SPDX-License-Identifier: Apache-2.0 */
#include "uart_stm32f7.h"

enum {
    USART_CR1 = 0x00,
    USART_CR2 = 0x04,
    USART_CR3 = 0x08,
    USART_BRR = 0x0C,
    USART_ISR = 0x1C,
    USART_ICR = 0x20,
    USART_RDR = 0x24,
    USART_TDR = 0x28,
};

enum {
    ISR_RX_FULL = 1 << 5,
    ISR_TX_COMPLETE = 1 << 6,
    ISR_TX_EMPTY = 1 << 7,
    ISR_TX_ENABLED = 1 << 21,
    ISR_RX_ENABLED = 1 << 22,
    CR1_ENABLE = 1 << 0,
    CR1_RX_ENABLE = 1 << 2,
    CR1_TX_ENABLE = 1 << 3,
    BRR_MASK = 0xFFFF,
    BRR_LEAST = 16,
};

/* The interrupt enables of CR1 (RXNEIE, TCIE, TXEIE) have the positions of their flags in ISR. */
enum { CR1_INTERRUPTS = ISR_RX_FULL | ISR_TX_COMPLETE | ISR_TX_EMPTY };

enum { WORD_CR2, WORD_CR3 };

static bool is_on(const struct ferrule_uart *uart, uint32_t direction)
{
    const uint32_t on = CR1_ENABLE | direction;
    return (uart->control & on) == on;
}

static uint32_t flags(const struct ferrule_uart *uart)
{
    uint32_t found = uart->state; /* TC, which software may clear */
    if (ferrule_uart_has_input(uart)) {
        found |= ISR_RX_FULL;
    }
    if (!ferrule_uart_is_full(uart)) {
        found |= ISR_TX_EMPTY;
    }
    found |= is_on(uart, CR1_TX_ENABLE) ? (uint32_t)ISR_TX_ENABLED : 0u;
    found |= is_on(uart, CR1_RX_ENABLE) ? (uint32_t)ISR_RX_ENABLED : 0u;
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
    uart->polls = 0;
    if (!is_on(uart, CR1_TX_ENABLE) || uart->baud_divider < BRR_LEAST ||
        ferrule_uart_is_full(uart)) {
        ++uart->output_lost;
        return;
    }
    uart->state |= ISR_TX_COMPLETE;
    ferrule_uart_send(uart, byte);
}

static void set_control(struct ferrule_uart *uart, uint32_t word)
{
    uart->control = word;
    uart->receives = is_on(uart, CR1_RX_ENABLE) ? 1u : 0u;
}

void ferrule_uart_stm32f7_reset(struct ferrule_uart *uart)
{
    uart->state = ISR_TX_COMPLETE;
}

void ferrule_uart_stm32f7_update(struct ferrule_uart *uart)
{
    uint32_t level = 0;
    if ((uart->control & CR1_ENABLE) != 0) {
        level = uart->control & CR1_INTERRUPTS & flags(uart);
    }
    ferrule_uart_drive(uart, uart->transmit_line, level);
}

uint64_t ferrule_uart_stm32f7_read(void *engine, uint64_t offset, unsigned bytes, void *uart)
{
    struct ferrule_uart *self = uart;
    uint32_t data;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case USART_ISR:
        return read_status(self);
    case USART_RDR:
        data = ferrule_uart_has_input(self) ? ferrule_uart_take(self) : 0u;
        ferrule_uart_stm32f7_update(self);
        return data;
    case USART_BRR:
        return self->baud_divider;
    case USART_CR1:
        return self->control;
    case USART_CR2:
        return self->words[WORD_CR2];
    case USART_CR3:
        return self->words[WORD_CR3];
    default:
        return 0;
    }
}

void ferrule_uart_stm32f7_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                void *uart)
{
    struct ferrule_uart *self = uart;
    const uint32_t word = (uint32_t)value;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case USART_ICR:
        self->state &= ~(word & (uint32_t)ISR_TX_COMPLETE); /* the only flag that is kept */
        break;
    case USART_TDR:
        transmit(self, (uint8_t)word);
        break;
    case USART_BRR:
        self->baud_divider = word & BRR_MASK;
        break;
    case USART_CR1:
        set_control(self, word);
        break;
    case USART_CR2:
        self->words[WORD_CR2] = word;
        break;
    case USART_CR3:
        self->words[WORD_CR3] = word;
        break;
    default:
        break;
    }
    ferrule_uart_stm32f7_update(self);
}
