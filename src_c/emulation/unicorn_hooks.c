/* SPDX-License-Identifier: Apache-2.0 */
#include "unicorn_hooks.h"

#include <stddef.h>

/* Of unicorn's enum uc_mem_type. */
enum { UC_MEM_WRITE_PROT = 22, UC_MEM_READ_PROT = 23 };

/* Bits of CPSR that hold ITSTATE (Armv7-M ARM, B1.4.2). */
#define ITSTATE 0x0600FC00u

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

/* A guest is idle once it has polled so often with no more instructions in between than this. */
enum { IDLE_POLLS = 1024, IDLE_INSTRUCTIONS = 256 };

/* Registers of the data watchpoint and trace unit (Armv7-M ARM, C1.8). */
enum {
    DWT_CTRL = 0x0,
    DWT_CYCCNT = 0x4,
    DWT_CYCCNTENA = 1,
};

uint64_t ferrule_guest_bytes(void)
{
    return sizeof(struct ferrule_guest);
}

uint64_t ferrule_cycle_counter_bytes(void)
{
    return sizeof(struct ferrule_cycle_counter);
}

uint64_t ferrule_uart_bytes(void)
{
    return sizeof(struct ferrule_uart);
}

/* A halfword that begins with 0b11101, 0b11110 or 0b11111 is the first of two (Armv7-M ARM, A5.1).
 */
static uint32_t decode(const uint8_t *code, uint32_t bytes)
{
    uint32_t instructions = 0;
    for (uint32_t at = 0; at < bytes; ++instructions) {
        at += code[at + 1] >= 0xE8 ? 4u : 2u;
    }
    return instructions;
}

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes)
{
    const uint32_t slot = ((address >> 1) ^ (address >> 15)) & (FERRULE_GUEST_CACHE - 1);
    struct ferrule_guest_block *cached = &guest->cache[slot];
    if (cached->address == address && cached->bytes == bytes) {
        return cached->instructions;
    }
    for (uint32_t i = 0; i < guest->window_count; ++i) {
        const struct ferrule_guest_window *window = &guest->windows[i];
        const uint64_t offset = (uint64_t)address - window->address;
        if (address < window->address || offset + bytes > window->bytes) {
            continue;
        }
        const uint32_t instructions = decode(window->data + offset, bytes);
        if (window->constant != 0 && bytes != 0 && bytes <= UINT16_MAX) {
            cached->address = address;
            cached->bytes = (uint16_t)bytes;
            cached->instructions = (uint16_t)instructions;
        }
        return instructions;
    }
    return 0;
}

uint64_t ferrule_guest_executed(struct ferrule_guest *guest, uint32_t program_counter)
{
    const uint32_t offset = program_counter - guest->block_address;
    if (offset >= guest->block_bytes) {
        return guest->entered;
    }
    return guest->entered - ferrule_guest_count(guest, guest->block_address, guest->block_bytes) +
           ferrule_guest_count(guest, guest->block_address, offset);
}

/*
 * Stops happen here only, before a block's first instruction: unicorn leaves right after this hook,
 * so that no instruction runs twice or half.
 */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest)
{
    struct ferrule_guest *self = guest;
    if (self->stop != FERRULE_GUEST_RUNS || self->entered >= self->budget) {
        if (self->stop == FERRULE_GUEST_RUNS) {
            self->stop = FERRULE_GUEST_BUDGET;
        }
        self->block_bytes = 0;
        (void)self->stop_emulation(engine); /* it can't fail while the engine runs */
        return;
    }
    self->block_address = (uint32_t)address;
    self->block_bytes = bytes;
    self->entered += ferrule_guest_count(self, (uint32_t)address, bytes);
}

/*
 * The system registers are mapped without permissions, so that every access comes by here first,
 * the only place where unicorn tells which instruction of the block is the one that accesses.
 * Telling it also restores ITSTATE, which would leak into the next block.
 */
bool ferrule_guest_on_refused(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest)
{
    struct ferrule_guest *self = guest;
    const bool protection = type == UC_MEM_WRITE_PROT || type == UC_MEM_READ_PROT;
    uint32_t program_counter = 0;
    (void)self->read_register(engine, (int)self->program_counter, &program_counter);
    self->now = ferrule_guest_executed(self, program_counter);
    if (protection && address - self->system_address < self->system_bytes) {
        uint32_t status = 0;
        (void)self->read_register(engine, (int)self->status_register, &status);
        if ((status & ITSTATE) != 0) {
            status &= ~ITSTATE;
            (void)self->write_register(engine, (int)self->status_register, &status);
        }
        return true;
    }
    if (self->fault.type == 0) {
        self->fault.type = type;
        self->fault.address = address;
        self->fault.bytes = bytes;
        self->fault.value = value;
        self->fault.program_counter = program_counter;
    }
    return false;
}

void ferrule_guest_on_exception(void *engine, uint32_t number, void *guest)
{
    struct ferrule_guest *self = guest;
    self->stop = FERRULE_GUEST_EXCEPTION;
    self->exception = number;
    (void)self->stop_emulation(engine);
}

static void advance(struct ferrule_cycle_counter *counter)
{
    if (counter->trace_enabled != 0 && (counter->control & DWT_CYCCNTENA) != 0) {
        counter->value += (uint32_t)(counter->guest->now - counter->since);
    }
    counter->since = counter->guest->now;
}

uint64_t ferrule_cycle_counter_read(void *engine, uint64_t offset, unsigned bytes, void *unit)
{
    struct ferrule_cycle_counter *counter = unit;
    (void)engine;
    (void)bytes;
    if (offset == DWT_CYCCNT) {
        advance(counter);
        return counter->value;
    }
    return offset == DWT_CTRL ? counter->control : 0;
}

void ferrule_cycle_counter_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                 void *unit)
{
    struct ferrule_cycle_counter *counter = unit;
    (void)engine;
    (void)bytes;
    advance(counter);
    if (offset == DWT_CTRL) {
        counter->control = (uint32_t)value & DWT_CYCCNTENA;
    } else if (offset == DWT_CYCCNT) {
        counter->value = (uint32_t)value;
    }
}

void ferrule_cycle_counter_enable(struct ferrule_cycle_counter *counter, uint32_t trace_enabled)
{
    advance(counter);
    counter->trace_enabled = trace_enabled;
}

static bool has_input(const struct ferrule_uart *uart)
{
    return (uart->control & CTRL_RX_ENABLE) != 0 && uart->input_taken < uart->input_bytes;
}

static void note_poll(struct ferrule_uart *uart)
{
    struct ferrule_guest *guest = uart->guest;
    uart->polls = guest->entered - uart->last_poll <= IDLE_INSTRUCTIONS ? uart->polls + 1 : 1;
    uart->last_poll = guest->entered;
    if (uart->polls >= IDLE_POLLS && guest->stop == FERRULE_GUEST_RUNS) {
        uart->polls = 0;
        guest->stop = FERRULE_GUEST_IDLE;
    }
}

static uint32_t read_state(struct ferrule_uart *uart)
{
    uint32_t state = uart->state;
    if (has_input(uart)) {
        state |= STATE_RX_FULL;
    } else {
        note_poll(uart);
    }
    if (uart->output_bytes >= FERRULE_UART_OUTPUT) {
        state |= STATE_TX_FULL;
    }
    return state;
}

static uint32_t read_data(struct ferrule_uart *uart)
{
    if (!has_input(uart)) {
        return 0;
    }
    uart->polls = 0;
    return uart->input[uart->input_taken++];
}

static uint32_t pending(const struct ferrule_uart *uart)
{
    const bool received = has_input(uart) && (uart->control & CTRL_RX_INTERRUPT) != 0;
    return uart->interrupts | (received ? (uint32_t)INTERRUPT_RX : 0u);
}

static void transmit(struct ferrule_uart *uart, uint8_t byte)
{
    struct ferrule_guest *guest = uart->guest;
    uart->polls = 0;
    if ((uart->control & CTRL_TX_ENABLE) == 0 || uart->baud_divider < BAUDDIV_LEAST) {
        ++uart->output_lost;
        return;
    }
    if (uart->output_bytes >= FERRULE_UART_OUTPUT) {
        ++uart->output_lost;
        uart->state |= STATE_TX_OVERRUN;
        uart->interrupts |= INTERRUPT_TX_OVERRUN;
        return;
    }
    uart->output[uart->output_bytes++] = byte;
    if ((uart->control & CTRL_TX_INTERRUPT) != 0) {
        uart->interrupts |= INTERRUPT_TX;
    }
    const bool enough = uart->output_wanted != 0 && uart->output_bytes >= uart->output_wanted;
    if ((enough || uart->output_bytes >= FERRULE_UART_OUTPUT_STOP) &&
        guest->stop == FERRULE_GUEST_RUNS) {
        guest->stop = FERRULE_GUEST_OUTPUT;
    }
}

uint64_t ferrule_uart_read(void *engine, uint64_t offset, unsigned bytes, void *uart)
{
    struct ferrule_uart *self = uart;
    (void)engine;
    (void)bytes;
    switch (offset) {
    case UART_DATA:
        return read_data(self);
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
}
