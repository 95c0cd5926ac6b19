/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a UART between the host and the guest, and the registers of the CMSDK UART (Arm DDI
 * 0479, section 4.3); uart_stm32.h and uart_nrf.h have those of others. layout.py in
 * ferrule/emulation/unicorn mirrors the struct. */
#ifndef FERRULE_EMULATION_UART_H
#define FERRULE_EMULATION_UART_H

#include "guest.h"

enum {
    FERRULE_UART_OUTPUT = 1 << 16, /* bytes that a UART holds until the host takes them */
    FERRULE_UART_OUTPUT_STOP = 1 << 15,
    FERRULE_UART_NO_LINE = -1,
    FERRULE_UART_WORDS = 32,
};

struct ferrule_uart {
    struct ferrule_guest *guest;
    const uint8_t *input; /* owned by the host; may be exchanged while the guest stands */
    uint64_t input_bytes;
    uint64_t input_taken;
    uint64_t output_wanted; /* the guest stops when so many bytes are there; 0: only when the buffer
                               fills */
    uint64_t output_bytes;
    uint64_t output_lost; /* bytes written while the transmitter was off, or into a full buffer */
    uint64_t last_poll;   /* guest->entered when the empty input was last polled */
    uint32_t polls;       /* polls of the empty input in close succession */
    uint32_t control;     /* these registers mean what the kind of UART makes of them */
    uint32_t state;
    uint32_t interrupts;
    uint32_t baud_divider;
    int32_t transmit_line; /* of the interrupt controller, or FERRULE_UART_NO_LINE */
    int32_t receive_line;
    uint32_t wired;                     /* whether a device that answers at once is behind it */
    uint32_t receives;                  /* nonzero while the receiver is on */
    uint32_t words[FERRULE_UART_WORDS]; /* what else a kind of UART keeps */
    uint8_t output[FERRULE_UART_OUTPUT];
};

uint64_t ferrule_uart_bytes(void);

/* Whether the receiver has a byte. */
bool ferrule_uart_has_input(const struct ferrule_uart *uart);

/* The next byte; there is one. */
uint8_t ferrule_uart_take(struct ferrule_uart *uart);

/* Notes that the guest has looked for input, and there is none: in close succession it idles. */
void ferrule_uart_note_poll(struct ferrule_uart *uart);

/* Whether the transmitter can't take a byte. */
bool ferrule_uart_is_full(const struct ferrule_uart *uart);

/* Puts a byte into the output, which has room, and stops the guest when the host wants it. */
void ferrule_uart_send(struct ferrule_uart *uart, uint8_t byte);

/* Drives a line of the interrupt controller, if there is one. */
void ferrule_uart_drive(const struct ferrule_uart *uart, int32_t line, uint32_t level);

/* Drives the interrupt lines; the host calls it when it has given input. */
void ferrule_uart_update(struct ferrule_uart *uart);

/* Callbacks; `uart` is the user data given to unicorn. */
uint64_t ferrule_uart_read(void *engine, uint64_t offset, unsigned bytes, void *uart);
void ferrule_uart_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value, void *uart);

#endif
