/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks that unicorn calls while it runs a guest. They are compiled for the host and loaded into
 * the same process; unicorn's own functions arrive as pointers, so that nothing links against it.
 * ferrule/emulation/unicorn/layout.py mirrors the structs.
 */
#ifndef FERRULE_EMULATION_UNICORN_HOOKS_H
#define FERRULE_EMULATION_UNICORN_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FERRULE_GUEST_WINDOWS = 16,    /* memories of one board, aliases counted */
    FERRULE_GUEST_CACHE = 1 << 14, /* blocks whose length in instructions is remembered */
    FERRULE_UART_OUTPUT = 1 << 16, /* bytes that a UART holds until the host takes them */
    FERRULE_UART_OUTPUT_STOP = 1 << 15,
};

enum ferrule_guest_stop {
    FERRULE_GUEST_RUNS = 0,
    FERRULE_GUEST_BUDGET = 1,    /* the instructions asked for are executed */
    FERRULE_GUEST_IDLE = 2,      /* it polls an empty UART */
    FERRULE_GUEST_OUTPUT = 3,    /* the bytes asked for are in a UART's output */
    FERRULE_GUEST_EXCEPTION = 4, /* it took an exception, which nobody models */
};

/* Memory as the host sees it. */
struct ferrule_guest_window {
    uint64_t address;
    uint64_t bytes;
    const uint8_t *data;
    uint64_t constant; /* nonzero: the guest can't write it, so that decoded blocks stay valid */
};

struct ferrule_guest_block {
    uint32_t address;
    uint16_t bytes;
    uint16_t instructions;
};

/* One access that memory or its protection refused. */
struct ferrule_guest_fault {
    uint64_t address;
    int64_t value;
    int32_t type; /* enum uc_mem_type; 0: none */
    int32_t bytes;
    uint32_t program_counter; /* of the instruction that accesses */
    uint32_t reserved;
};

struct ferrule_guest {
    int (*stop_emulation)(void *engine);
    int (*read_register)(void *engine, int id, void *value);
    int (*write_register)(void *engine, int id, const void *value);

    uint64_t entered; /* instructions of all blocks entered, the current one whole */
    uint64_t budget;  /* value of `entered` at which the next block does not begin */
    uint64_t now;     /* instructions before the one that accesses a system register, exact */
    uint32_t stop;    /* enum ferrule_guest_stop */
    uint32_t block_address;
    uint32_t block_bytes;
    uint32_t exception; /* number that unicorn gave it, valid with FERRULE_GUEST_EXCEPTION */
    uint32_t system_address;
    uint32_t system_bytes; /* the window of system registers, whose every access is synchronised */
    uint32_t program_counter; /* unicorn's id of the register */
    uint32_t status_register; /* likewise of CPSR, which holds ITSTATE */

    struct ferrule_guest_fault fault;
    uint32_t window_count;
    uint32_t reserved;
    struct ferrule_guest_window windows[FERRULE_GUEST_WINDOWS];
    struct ferrule_guest_block cache[FERRULE_GUEST_CACHE];
};

/* Cycle counter of the data watchpoint and trace unit; it counts executed instructions. */
struct ferrule_cycle_counter {
    struct ferrule_guest *guest;
    uint64_t since; /* guest->now when `value` was right */
    uint32_t value;
    uint32_t control;
    uint32_t trace_enabled; /* DEMCR.TRCENA, kept by the system control space */
    uint32_t reserved;
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
    uint32_t control;
    uint32_t state;
    uint32_t interrupts;
    uint32_t baud_divider;
    uint32_t reserved;
    uint8_t output[FERRULE_UART_OUTPUT];
};

uint64_t ferrule_guest_bytes(void);
uint64_t ferrule_cycle_counter_bytes(void);
uint64_t ferrule_uart_bytes(void);

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes);
uint64_t ferrule_guest_executed(struct ferrule_guest *guest, uint32_t program_counter);

/* Callbacks; `guest`, `unit` and `uart` are the user data given to unicorn. */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest);
bool ferrule_guest_on_refused(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest);
void ferrule_guest_on_exception(void *engine, uint32_t number, void *guest);

uint64_t ferrule_cycle_counter_read(void *engine, uint64_t offset, unsigned bytes, void *unit);
void ferrule_cycle_counter_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                 void *unit);
void ferrule_cycle_counter_enable(struct ferrule_cycle_counter *counter, uint32_t trace_enabled);

uint64_t ferrule_uart_read(void *engine, uint64_t offset, unsigned bytes, void *uart);
void ferrule_uart_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value, void *uart);

#endif
