/* SPDX-License-Identifier: Apache-2.0 */
#include "uart_nrf.h"

#include <stddef.h>

enum {
    TASKS_STARTRX = 0x000,
    TASKS_STOPRX = 0x004,
    TASKS_STARTTX = 0x008,
    TASKS_STOPTX = 0x00C,
    EVENTS_FIRST = 0x100,
    EVENTS_LAST = 0x17C,
    REG_SHORTS = 0x200,
    REG_INTEN = 0x300,
    REG_INTENSET = 0x304,
    REG_INTENCLR = 0x308,
    REG_ENABLE = 0x500,
    REG_PSEL_TXD = 0x50C,
    REG_PSEL_RXD = 0x514,
    REG_RXD = 0x518,
    REG_TXD = 0x51C,
    REG_BAUDRATE = 0x524,
    REG_RXD_PTR = 0x534,
    REG_RXD_MAXCNT = 0x538,
    REG_RXD_AMOUNT = 0x53C,
    REG_TXD_PTR = 0x544,
    REG_TXD_MAXCNT = 0x548,
    REG_TXD_AMOUNT = 0x54C,
    REG_CONFIG = 0x56C,
};

/* An event's bit in INTEN is the index of its register among the events. */
#define EVENT_RXDRDY    (1u << 2)
#define EVENT_ENDRX     (1u << 4)
#define EVENT_TXDRDY    (1u << 7)
#define EVENT_ENDTX     (1u << 8)
#define EVENT_RXTO      (1u << 17)
#define EVENT_RXSTARTED (1u << 19)
#define EVENT_TXSTARTED (1u << 20)
#define EVENT_TXSTOPPED (1u << 22)
#define EVENTS_OF_INPUT (EVENT_RXDRDY | EVENT_ENDRX)

#define SHORT_ENDRX_STARTRX (1u << 5)
#define SHORT_ENDRX_STOPRX  (1u << 6)
#define ENABLE_MASK         0xFu
#define ENABLE_UART         4u /* without DMA: the only one of the nRF51 */
#define ENABLE_UARTE        8u
#define PSEL_NONE           (1u << 31)
#define COUNT_MASK          0xFFFFu
#define RAM_REGION          1u /* index of the 512 MiB region; DMA cannot access flash */

/* Registers without a field in struct ferrule_uart, whose field `control` is INTEN, `interrupts`
 * the events, and `receives` nonzero during DMA of input. */
enum {
    WORD_SHORTS,
    WORD_ENABLE,
    WORD_PSEL, /* for RTS, TXD, CTS and RXD */
    WORD_CONFIG = WORD_PSEL + 4,
    WORD_RX_POINTER,
    WORD_RX_MOST,
    WORD_RX_AMOUNT,
    WORD_RX_TARGET, /* of the current DMA; RXD.PTR may change meanwhile */
    WORD_RX_LIMIT,
    WORD_TX_POINTER,
    WORD_TX_MOST,
    WORD_TX_AMOUNT,
    WORD_READY,   /* without DMA: whether RXD has a byte */
    WORD_STARTED, /* without DMA: whether the transmitter is on */
};

static bool load_byte(struct ferrule_uart *uart, uint32_t address, uint8_t *byte)
{
    uint32_t word;
    if (address >> 29 != RAM_REGION || !ferrule_guest_load(uart->guest, address & ~3u, &word)) {
        return false;
    }
    *byte = (uint8_t)(word >> 8 * (address & 3u));
    return true;
}

static void store_byte(struct ferrule_uart *uart, uint32_t address, uint8_t byte)
{
    uint32_t word;
    if (address >> 29 != RAM_REGION || !ferrule_guest_load(uart->guest, address & ~3u, &word)) {
        return; /* the byte is lost, as on the chip */
    }
    const uint32_t shift = 8 * (address & 3u);
    word = (word & ~(0xFFu << shift)) | (uint32_t)byte << shift;
    (void)ferrule_guest_store(uart->guest, address & ~3u, word);
}

static bool is_on(const struct ferrule_uart *uart)
{
    return uart->words[WORD_ENABLE] == ENABLE_UARTE || uart->words[WORD_ENABLE] == ENABLE_UART;
}

static bool has_dma(const struct ferrule_uart *uart)
{
    return uart->words[WORD_ENABLE] != ENABLE_UART;
}

static bool has_pin(const struct ferrule_uart *uart, uint32_t select)
{
    return (uart->words[WORD_PSEL + (select - (REG_PSEL_TXD - 4)) / 4] & PSEL_NONE) == 0;
}

static void start_receiver(struct ferrule_uart *uart)
{
    if (!is_on(uart) || !has_pin(uart, REG_PSEL_RXD)) {
        return;
    }
    uart->words[WORD_RX_TARGET] = uart->words[WORD_RX_POINTER];
    uart->words[WORD_RX_LIMIT] = uart->words[WORD_RX_MOST];
    uart->words[WORD_RX_AMOUNT] = 0;
    uart->interrupts |= has_dma(uart) ? EVENT_RXSTARTED : 0u;
    uart->receives = 1;
}

static void end_reception(struct ferrule_uart *uart)
{
    uart->receives = 0;
    uart->interrupts |= has_dma(uart) ? EVENT_ENDRX : 0u;
}

static void stop_receiver(struct ferrule_uart *uart)
{
    if (uart->receives != 0) {
        end_reception(uart);
    }
    uart->interrupts |= EVENT_RXTO;
}

/* Moves input to memory until the buffer is full or the input is exhausted. On the chip bytes
 * arrive over time. Here they arrive when the guest polls, and after a full buffer not before the
 * guest has cleared ENDRX. */
static void receive(struct ferrule_uart *uart)
{
    if (!has_dma(uart)) {
        if (uart->words[WORD_READY] == 0 && ferrule_uart_has_input(uart)) {
            uart->words[WORD_READY] = 1;
            uart->interrupts |= EVENT_RXDRDY;
        }
        return;
    }
    while ((uart->interrupts & EVENT_ENDRX) == 0 && ferrule_uart_has_input(uart)) {
        if (uart->words[WORD_RX_AMOUNT] < uart->words[WORD_RX_LIMIT]) {
            const uint32_t at = uart->words[WORD_RX_AMOUNT]++;
            store_byte(uart, uart->words[WORD_RX_TARGET] + at, ferrule_uart_take(uart));
            uart->interrupts |= EVENT_RXDRDY;
        }
        if (uart->words[WORD_RX_AMOUNT] >= uart->words[WORD_RX_LIMIT]) {
            end_reception(uart);
            if ((uart->words[WORD_SHORTS] & SHORT_ENDRX_STOPRX) != 0) {
                stop_receiver(uart);
            }
            if ((uart->words[WORD_SHORTS] & SHORT_ENDRX_STARTRX) != 0) {
                start_receiver(uart);
            }
        }
    }
}

static void transmit(struct ferrule_uart *uart)
{
    uart->polls = 0;
    uart->words[WORD_STARTED] = 1;
    if (!is_on(uart) || !has_dma(uart)) {
        return;
    }
    uart->interrupts |= EVENT_TXSTARTED;
    const uint32_t count = uart->words[WORD_TX_MOST];
    for (uint32_t i = 0; i < count; ++i) {
        uint8_t byte;
        if (has_pin(uart, REG_PSEL_TXD) && uart->baud_divider != 0 && !ferrule_uart_is_full(uart) &&
            load_byte(uart, uart->words[WORD_TX_POINTER] + i, &byte)) {
            ferrule_uart_send(uart, byte);
        } else {
            ++uart->output_lost;
        }
    }
    uart->words[WORD_TX_AMOUNT] = count;
    uart->interrupts |= EVENT_ENDTX | (count != 0 ? EVENT_TXDRDY : 0u);
}

static void transmit_byte(struct ferrule_uart *uart, uint8_t byte)
{
    uart->polls = 0;
    if (has_dma(uart) || uart->words[WORD_STARTED] == 0 || !has_pin(uart, REG_PSEL_TXD) ||
        uart->baud_divider == 0 || ferrule_uart_is_full(uart)) {
        ++uart->output_lost;
    } else {
        ferrule_uart_send(uart, byte);
    }
    uart->interrupts |= EVENT_TXDRDY;
}

static uint32_t received_byte(struct ferrule_uart *uart)
{
    if (uart->words[WORD_READY] == 0 || !ferrule_uart_has_input(uart)) {
        return 0;
    }
    uart->words[WORD_READY] = 0;
    return ferrule_uart_take(uart);
}

/* Returns the word that holds a register, or NULL if there is none. */
static uint32_t *kept(struct ferrule_uart *uart, uint64_t offset)
{
    switch (offset) {
    case REG_SHORTS:
        return &uart->words[WORD_SHORTS];
    case REG_INTEN:
    case REG_INTENSET:
    case REG_INTENCLR:
        return &uart->control;
    case REG_ENABLE:
        return &uart->words[WORD_ENABLE];
    case REG_PSEL_TXD - 4:
    case REG_PSEL_TXD:
    case REG_PSEL_TXD + 4:
    case REG_PSEL_RXD:
        return &uart->words[WORD_PSEL + (offset - (REG_PSEL_TXD - 4)) / 4];
    case REG_BAUDRATE:
        return &uart->baud_divider;
    case REG_RXD_PTR:
        return &uart->words[WORD_RX_POINTER];
    case REG_RXD_MAXCNT:
        return &uart->words[WORD_RX_MOST];
    case REG_RXD_AMOUNT:
        return &uart->words[WORD_RX_AMOUNT];
    case REG_TXD_PTR:
        return &uart->words[WORD_TX_POINTER];
    case REG_TXD_MAXCNT:
        return &uart->words[WORD_TX_MOST];
    case REG_TXD_AMOUNT:
        return &uart->words[WORD_TX_AMOUNT];
    case REG_CONFIG:
        return &uart->words[WORD_CONFIG];
    default:
        return NULL;
    }
}

static uint32_t read_event(struct ferrule_uart *uart, uint32_t event)
{
    receive(uart);
    if ((uart->interrupts & event) == 0 && (event & EVENTS_OF_INPUT) != 0) {
        ferrule_uart_note_poll(uart);
    }
    return (uart->interrupts & event) != 0 ? 1u : 0u;
}

static bool start_task(struct ferrule_uart *uart, uint64_t offset)
{
    switch (offset) {
    case TASKS_STARTRX:
        start_receiver(uart);
        return true;
    case TASKS_STOPRX:
        stop_receiver(uart);
        return true;
    case TASKS_STARTTX:
        transmit(uart);
        return true;
    case TASKS_STOPTX:
        uart->words[WORD_STARTED] = 0;
        uart->interrupts |= EVENT_TXSTOPPED;
        return true;
    default:
        return false;
    }
}

static void set(struct ferrule_uart *uart, uint64_t offset, uint32_t word)
{
    uint32_t *register_word = kept(uart, offset);
    if (register_word == NULL) {
        return;
    }
    switch (offset) {
    case REG_INTENSET:
        *register_word |= word;
        break;
    case REG_INTENCLR:
        *register_word &= ~word;
        break;
    case REG_ENABLE:
        *register_word = word & ENABLE_MASK;
        uart->receives = is_on(uart) ? uart->receives : 0u;
        break;
    case REG_RXD_MAXCNT:
    case REG_TXD_MAXCNT:
        *register_word = word & COUNT_MASK;
        break;
    case REG_RXD_AMOUNT:
    case REG_TXD_AMOUNT:
        break; /* read only */
    default:
        *register_word = word;
        break;
    }
}

void ferrule_uart_nrf_reset(struct ferrule_uart *uart)
{
    for (uint32_t i = 0; i < 4; ++i) {
        uart->words[WORD_PSEL + i] = UINT32_MAX;
    }
    uart->baud_divider = 0x04000000u;
}

void ferrule_uart_nrf_update(struct ferrule_uart *uart)
{
    receive(uart);
    ferrule_uart_drive(uart, uart->transmit_line, uart->interrupts & uart->control);
}

uint64_t ferrule_uart_nrf_read(void *engine, uint64_t offset, unsigned bytes, void *uart)
{
    struct ferrule_uart *self = uart;
    uint32_t value;
    (void)engine;
    (void)bytes;
    if (offset >= EVENTS_FIRST && offset <= EVENTS_LAST) {
        value = read_event(self, 1u << (offset - EVENTS_FIRST) / 4);
        ferrule_uart_nrf_update(self);
        return value;
    }
    if (offset == REG_RXD) {
        value = received_byte(self);
        ferrule_uart_nrf_update(self);
        return value;
    }
    const uint32_t *word = kept(self, offset);
    return word == NULL ? 0u : *word;
}

void ferrule_uart_nrf_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                            void *uart)
{
    struct ferrule_uart *self = uart;
    const uint32_t word = (uint32_t)value;
    (void)engine;
    (void)bytes;
    if (offset >= EVENTS_FIRST && offset <= EVENTS_LAST) {
        if (word == 0) {
            self->interrupts &= ~(1u << (offset - EVENTS_FIRST) / 4);
        }
    } else if (offset == REG_TXD) {
        transmit_byte(self, (uint8_t)word);
    } else if ((word & 1u) == 0 || !start_task(self, offset)) {
        set(self, offset, word);
    }
    ferrule_uart_nrf_update(self);
}
