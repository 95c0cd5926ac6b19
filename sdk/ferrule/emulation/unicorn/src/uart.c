/* SPDX-License-Identifier: Apache-2.0 */
#include "uart.h"

#include "core.h"

#include <stddef.h>

/* Registers of the CMSDK UART (Arm DDI 0479, section 4.3). */
enum {
    UART_DATA = 0x0,
    UART_STATE = 0x4,
    UART_CTRL = 0x8,
    UART_INTERRUPT = 0xC,
    UART_BAUDDIV = 0x10,
};

enum {
    STATE_TX_FULL = 1 << 0,
    STATE_RX_FULL = 1 << 1,
    STATE_TX_OVERRUN = 1 << 2,
    STATE_RX_OVERRUN = 1 << 3,
    CTRL_TX_ENABLE = 1 << 0,
    CTRL_RX_ENABLE = 1 << 1,
    CTRL_TX_INTERRUPT = 1 << 2,
    CTRL_RX_INTERRUPT = 1 << 3,
    CTRL_MASK = 0x7F,
    INTERRUPT_TX = 1 << 0,
    INTERRUPT_RX = 1 << 1,
    INTERRUPT_TX_OVERRUN = 1 << 2,
    INTERRUPT_MASK = 0xF,
    BAUDDIV_LEAST = 16,
    BAUDDIV_MASK = 0xFFFFF,
};

/* A guest is idle after IDLE_POLLS polls with at most IDLE_INSTRUCTIONS between two of them;
 * ANSWER_POLLS are enough if it has sent bytes, which whoever reads them may answer. */
enum { IDLE_POLLS = 1024, IDLE_INSTRUCTIONS = 256, ANSWER_POLLS = 4 };

uint64_t ferrule_uart_bytes(void)
{
    return sizeof(struct ferrule_uart);
}

bool ferrule_uart_has_input(const struct ferrule_uart *uart)
{
    return uart->receives != 0 && uart->input_taken < uart->input_bytes;
}

uint8_t ferrule_uart_take(struct ferrule_uart *uart)
{
    uart->polls = 0;
    return uart->input[uart->input_taken++];
}

void ferrule_uart_note_poll(struct ferrule_uart *uart)
{
    struct ferrule_guest *guest = uart->guest;
    uart->polls = guest->entered - uart->last_poll <= IDLE_INSTRUCTIONS ? uart->polls + 1 : 1;
    uart->last_poll = guest->entered;
    const uint32_t enough = uart->output_bytes != 0 ? ANSWER_POLLS : IDLE_POLLS;
    if (uart->polls >= enough && guest->stop == FERRULE_GUEST_RUNS) {
        uart->polls = 0;
        ferrule_guest_stop(guest, FERRULE_GUEST_IDLE);
    }
}

bool ferrule_uart_is_full(const struct ferrule_uart *uart)
{
    return uart->output_bytes >= FERRULE_UART_OUTPUT;
}

void ferrule_uart_send(struct ferrule_uart *uart, uint8_t byte)
{
    uart->output[uart->output_bytes++] = byte;
    const bool enough = uart->output_wanted != 0 && uart->output_bytes >= uart->output_wanted;
    if (enough || uart->output_bytes >= FERRULE_UART_OUTPUT_STOP) {
        ferrule_guest_stop(uart->guest, FERRULE_GUEST_OUTPUT);
    }
}

void ferrule_uart_drive(const struct ferrule_uart *uart, int32_t line, uint32_t level)
{
    if (line != FERRULE_UART_NO_LINE && uart->guest->core != NULL) {
        ferrule_core_set_line(uart->guest->core, (uint32_t)line, level);
    }
}

static uint32_t read_state(struct ferrule_uart *uart)
{
    uint32_t state = uart->state;
    if (ferrule_uart_has_input(uart)) {
        state |= STATE_RX_FULL;
    } else {
        ferrule_uart_note_poll(uart);
    }
    if (ferrule_uart_is_full(uart)) {
        state |= STATE_TX_FULL;
    }
    return state;
}

static uint32_t pending(const struct ferrule_uart *uart)
{
    const bool received = ferrule_uart_has_input(uart) && (uart->control & CTRL_RX_INTERRUPT) != 0;
    return uart->interrupts | (received ? (uint32_t)INTERRUPT_RX : 0u);
}

static void transmit(struct ferrule_uart *uart, uint8_t byte)
{
    uart->polls = 0;
    if ((uart->control & CTRL_TX_ENABLE) == 0 || uart->baud_divider < BAUDDIV_LEAST) {
        ++uart->output_lost;
        return;
    }
    if (ferrule_uart_is_full(uart)) {
        ++uart->output_lost;
        uart->state |= STATE_TX_OVERRUN;
        uart->interrupts |= INTERRUPT_TX_OVERRUN;
        return;
    }
    if ((uart->control & CTRL_TX_INTERRUPT) != 0) {
        uart->interrupts |= INTERRUPT_TX;
    }
    ferrule_uart_send(uart, byte);
}

void ferrule_uart_update(struct ferrule_uart *uart)
{
    const uint32_t interrupts = pending(uart);
    ferrule_uart_drive(uart, uart->transmit_line, interrupts & INTERRUPT_TX);
    ferrule_uart_drive(uart, uart->receive_line, interrupts & INTERRUPT_RX);
}

uint64_t ferrule_uart_read(void *engine, uint64_t offset, unsigned bytes, void *uart)
{
    struct ferrule_uart *self = uart;
    uint32_t data;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case UART_DATA:
        data = ferrule_uart_has_input(self) ? ferrule_uart_take(self) : 0u;
        ferrule_uart_update(self);
        return data;
    case UART_STATE:
        return read_state(self);
    case UART_CTRL:
        return self->control;
    case UART_INTERRUPT:
        return pending(self);
    case UART_BAUDDIV:
        return self->baud_divider;
    default:
        return 0;
    }
}

void ferrule_uart_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value, void *uart)
{
    struct ferrule_uart *self = uart;
    const uint32_t word = (uint32_t)value;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case UART_DATA:
        transmit(self, (uint8_t)word);
        break;
    case UART_STATE:
        self->state &= ~(word & (STATE_TX_OVERRUN | STATE_RX_OVERRUN));
        break;
    case UART_CTRL:
        self->control = word & CTRL_MASK;
        self->receives = word & CTRL_RX_ENABLE;
        break;
    case UART_INTERRUPT:
        self->interrupts &= ~(word & INTERRUPT_MASK);
        break;
    case UART_BAUDDIV:
        self->baud_divider = word & BAUDDIV_MASK;
        break;
    default:
        break;
    }
    ferrule_uart_update(self);
}
