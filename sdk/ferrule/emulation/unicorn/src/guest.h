/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core in unicorn: its memories, its registers and its instructions, counted. The functions are
 * compiled for the host and loaded into the same process; unicorn's own functions arrive as
 * pointers, so that nothing links against it. ferrule/emulation/unicorn/layout.py mirrors the
 * structs.
 */
#ifndef FERRULE_EMULATION_GUEST_H
#define FERRULE_EMULATION_GUEST_H

#include <stdbool.h>
#include <stdint.h>

struct ferrule_core;

enum {
    FERRULE_GUEST_WINDOWS = 16,    /* memories of one board, aliases counted */
    FERRULE_GUEST_CACHE = 1 << 14, /* blocks whose length in instructions is remembered */
};

enum ferrule_guest_stop {
    FERRULE_GUEST_RUNS = 0,
    FERRULE_GUEST_BUDGET = 1,      /* the instructions asked for are executed */
    FERRULE_GUEST_IDLE = 2,        /* it polls an empty UART */
    FERRULE_GUEST_OUTPUT = 3,      /* the bytes asked for are in a UART's output */
    FERRULE_GUEST_EXCEPTION = 4,   /* unicorn raised an exception that no M-profile core has */
    FERRULE_GUEST_ASLEEP = 5,      /* it sleeps, and only the host can wake it */
    FERRULE_GUEST_LOCKUP = 6,      /* it faulted where no fault handler may run */
    FERRULE_GUEST_RESET = 7,       /* it asked for a reset */
    FERRULE_GUEST_FAILED = 8,      /* a device model in Python raised an exception */
    FERRULE_GUEST_ERROR = 9,       /* unicorn gave up; its error number is in `error` */
    FERRULE_GUEST_BREAKPOINT = 10, /* it is about to execute an instruction at a breakpoint */
};

/* Registers by the index of unicorn's number for them in `register_ids`. */
enum ferrule_register {
    FERRULE_R0,
    FERRULE_R1,
    FERRULE_R2,
    FERRULE_R3,
    FERRULE_R12,
    FERRULE_SP,
    FERRULE_LR,
    FERRULE_PC,
    FERRULE_XPSR,     /* for reading */
    FERRULE_XPSR_ALL, /* for writing: all fields */
    FERRULE_IEPSR,    /* for writing: exception number, Thumb and IT bits */
    FERRULE_CPSR,     /* writing it makes unicorn look anew at the mode */
    FERRULE_CONTROL,
    FERRULE_PRIMASK,
    FERRULE_BASEPRI,
    FERRULE_FAULTMASK,
    FERRULE_PSP,
    FERRULE_FPSCR,
    FERRULE_D0, /* D1 to D15 follow */
    FERRULE_REGISTERS,
};

/* Memory as the host sees it. */
struct ferrule_guest_window {
    uint64_t address;
    uint64_t bytes;
    uint8_t *data;
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
    int (*start_emulation)(void *engine, uint64_t begin, uint64_t until, uint64_t timeout,
                           uint64_t count);
    int (*stop_emulation)(void *engine);
    int (*read_register)(void *engine, int id, void *value);
    int (*write_register)(void *engine, int id, const void *value);
    void *engine;
    struct ferrule_core *core; /* NULL: nothing but instructions is modelled */

    uint64_t entered; /* instructions of all blocks entered, the current one whole */
    uint64_t budget;  /* value of `entered` at which `run` returns */
    uint64_t limit;   /* value of `entered` at which a block's beginning is worth a look */
    uint64_t now;     /* instructions before the one that accesses a synchronised register, exact */
    uint32_t stop;    /* enum ferrule_guest_stop */
    uint32_t block_address;
    uint32_t block_bytes;
    uint32_t paused;    /* the emulation ended before a block, on our wish */
    uint32_t exception; /* number that unicorn gave it; 0: none */
    uint32_t error;     /* enum uc_err, valid with FERRULE_GUEST_ERROR */

    struct ferrule_guest_fault fault;
    /* Asks a device whether it accepts an access, outside of the private peripheral bus; NULL: all
     * do. What it answers to a read is `answer` then. */
    uint32_t (*ask)(uint64_t address, uint32_t bytes, uint32_t write, uint64_t value);
    uint64_t answer;
    int32_t register_ids[FERRULE_REGISTERS];
    uint32_t window_count;
    uint32_t breakpoints; /* how many addresses unicorn stops at; nonzero also for bkpt */
    uint32_t reserved;
    struct ferrule_guest_window windows[FERRULE_GUEST_WINDOWS];
    struct ferrule_guest_block cache[FERRULE_GUEST_CACHE];
};

uint64_t ferrule_guest_bytes(void);

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes);
uint64_t ferrule_guest_executed(struct ferrule_guest *guest, uint32_t program_counter);

uint32_t ferrule_guest_read(struct ferrule_guest *guest, enum ferrule_register which);
void ferrule_guest_write(struct ferrule_guest *guest, enum ferrule_register which, uint32_t value);

/* A word of a memory; false where there is none. */
bool ferrule_guest_load(struct ferrule_guest *guest, uint32_t address, uint32_t *value);
bool ferrule_guest_store(struct ferrule_guest *guest, uint32_t address, uint32_t value);

/* Ends the run before the next block, unless another reason ends it already. */
void ferrule_guest_stop(struct ferrule_guest *guest, enum ferrule_guest_stop reason);

/* Callbacks; `guest` is the user data given to unicorn. */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest);
bool ferrule_guest_on_refused(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest);
void ferrule_guest_on_exception(void *engine, uint32_t number, void *guest);

/* Registers of devices that are asked: the access is done already when unicorn calls these. */
uint64_t ferrule_guest_answer(void *engine, uint64_t offset, unsigned bytes, void *guest);
void ferrule_guest_accept(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                          void *guest);

#endif
