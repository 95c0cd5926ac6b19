/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a UART between host and guest, and the registers of the CMSDK UART (Arm DDI 0479,
 * section 4.3); uart_stm32.h and uart_nrf.h have those of other UARTs. layout.py in
 * ferrule/emulation/unicorn mirrors the struct. */
#ifndef FERRULE_EMULATION_UART_H
#define FERRULE_EMULATION_UART_H

#include "guest.h"

enum {
    FERRULE_UART_OUTPUT = 1 << 16, /* capacity for bytes that the host has not taken */
    FERRULE_UART_OUTPUT_STOP = 1 << 15,
    FERRULE_UART_NO_LINE = -1,
    FERRULE_UART_WORDS = 32,
};

struct ferrule_uart {
    struct ferrule_guest *guest;
    const uint8_t *input; /* owned by the host; may be replaced while the guest is stopped */
    uint64_t input_bytes;
    uint64_t input_taken;
    uint64_t output_wanted; /* bytes at which the guest stops; 0: only when the buffer is full */
    uint64_t output_bytes;
    uint64_t output_lost; /* bytes written while the transmitter was off, or into a full buffer */
    uint64_t last_poll;   /* guest->entered when the empty input was last polled */
    uint32_t polls;       /* polls of the empty input in close succession */
    uint32_t control;     /* the meaning of these registers depends on the kind of UART */
    uint32_t state;
    uint32_t interrupts;
    uint32_t baud_divider;
    int32_t transmit_line; /* input of the interrupt controller, or FERRULE_UART_NO_LINE */
    int32_t receive_line;
    uint32_t receives;                  /* nonzero while the receiver is on */
    uint32_t words[FERRULE_UART_WORDS]; /* further registers of a kind of UART */
    uint8_t output[FERRULE_UART_OUTPUT];
};

uint64_t ferrule_uart_bytes(void);

/* Returns whether the receiver has a byte. */
bool ferrule_uart_has_input(const struct ferrule_uart *uart);

/* Takes the next byte; there must be one. */
uint8_t ferrule_uart_take(struct ferrule_uart *uart);

/* Notes a poll without input; many in close succession mean that the guest is idle. */
void ferrule_uart_note_poll(struct ferrule_uart *uart);

/* Returns whether the transmitter cannot accept a byte. */
bool ferrule_uart_is_full(const struct ferrule_uart *uart);

/* Appends a byte to the output, which must not be full, and stops the guest once the host's
 * requested number of bytes is reached. */
void ferrule_uart_send(struct ferrule_uart *uart, uint8_t byte);

/* Sets the level of a line of the interrupt controller, unless it is FERRULE_UART_NO_LINE. */
void ferrule_uart_drive(const struct ferrule_uart *uart, int32_t line, uint32_t level);

/* Updates the interrupt lines; the host calls it after adding input. */
void ferrule_uart_update(struct ferrule_uart *uart);

/* Callbacks; `uart` is the user data given to unicorn. */
uint64_t ferrule_uart_read(void *engine, uint64_t offset, unsigned bytes, void *uart);
void ferrule_uart_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value, void *uart);

#endif
