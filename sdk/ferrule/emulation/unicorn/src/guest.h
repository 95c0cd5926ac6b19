/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core in unicorn: its memories, its registers and the count of its instructions. The functions
 * are compiled for the host and loaded into the same process. unicorn's functions are passed as
 * pointers, so that nothing links against it. ferrule/emulation/unicorn/layout.py mirrors the
 * structs.
 */
#ifndef FERRULE_EMULATION_GUEST_H
#define FERRULE_EMULATION_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "alignment.h"
#include "architecture.h"

struct ferrule_core;
struct ferrule_ownership;
struct ferrule_timing;

enum {
    FERRULE_GUEST_WINDOWS = 16,    /* memories of a board, including aliases */
    FERRULE_GUEST_CACHE = 1 << 14, /* blocks whose decoding is cached */
    FERRULE_GUEST_SITES = 1 << 14, /* slots for instructions whose addresses are checked */
    FERRULE_GUEST_REGISTERS = 40,  /* the most registers of an architecture */
};

enum ferrule_guest_stop {
    FERRULE_GUEST_RUNS = 0,
    FERRULE_GUEST_BUDGET = 1,      /* the requested instructions are executed */
    FERRULE_GUEST_IDLE = 2,        /* the guest polls an empty UART */
    FERRULE_GUEST_OUTPUT = 3,      /* a UART's output holds the requested bytes */
    FERRULE_GUEST_EXCEPTION = 4,   /* unicorn raised an exception that the cores lack */
    FERRULE_GUEST_ASLEEP = 5,      /* the guest sleeps, and only the host can wake it */
    FERRULE_GUEST_LOCKUP = 6,      /* the guest faulted where no fault handler may run */
    FERRULE_GUEST_RESET = 7,       /* the guest requested a reset */
    FERRULE_GUEST_FAILED = 8,      /* a device model in Python raised an exception */
    FERRULE_GUEST_ERROR = 9,       /* unicorn gave up; its error number is in `error` */
    FERRULE_GUEST_BREAKPOINT = 10, /* the next instruction is at a breakpoint */
    FERRULE_GUEST_OWNERSHIP = 11,  /* the core accessed what it does not own */
};

enum ferrule_guest_pause {
    FERRULE_GUEST_GOES_ON = 0,
    FERRULE_GUEST_PAUSES = 1,
    FERRULE_GUEST_LACKS_CHECKS = 2, /* the next block needs checks for some instructions */
    FERRULE_GUEST_DISTRUSTS = 3,    /* the next block needs checks for all instructions */
};

/* A memory of the guest and its bytes in the host. */
struct ferrule_guest_window {
    uint64_t address;
    uint64_t bytes;
    uint8_t *data;
    uint64_t constant; /* nonzero: the guest cannot write it, so decoded blocks stay valid */
    uint64_t executes; /* nonzero: unicorn may execute it, and then checks each write for code */
};

struct ferrule_guest_block {
    uint32_t address;
    uint16_t bytes;
    uint16_t instructions;
    struct ferrule_alignment alignment;
    uint16_t reserved;
};

/* Type of a fault with an unaligned address, beside those of enum uc_mem_type. */
enum { FERRULE_GUEST_UNALIGNED = 64 };

/* An access that was refused because of missing memory, its protection or its alignment. */
struct ferrule_guest_fault {
    uint64_t address; /* if unaligned: without an offset that is a multiple of 4 */
    int64_t value;
    int32_t type; /* enum uc_mem_type or FERRULE_GUEST_UNALIGNED; 0: none */
    int32_t bytes;
    uint32_t program_counter; /* of the accessing instruction */
    uint32_t reserved;
};

struct ferrule_guest {
    int (*start_emulation)(void *engine, uint64_t begin, uint64_t until, uint64_t timeout,
                           uint64_t count);
    int (*stop_emulation)(void *engine);
    int (*read_register)(void *engine, int id, void *value);
    int (*write_register)(void *engine, int id, const void *value);
    int (*add_hook)(void *engine, uintptr_t *hook, int type, void *callback, void *user_data,
                    uint64_t begin, uint64_t end, ...);
    int (*delete_hook)(void *engine, uintptr_t hook);
    int (*control)(void *engine, int what, ...);
    int (*protect_memory)(void *engine, uint64_t address, uint64_t bytes, uint32_t permissions);
    void *engine;
    struct ferrule_core *core;           /* NULL: only instructions are modelled */
    struct ferrule_ownership *ownership; /* NULL: it is not checked */
    struct ferrule_timing *timing;       /* NULL: an instruction takes one unit of time */

    uint64_t entered; /* instructions in all blocks entered, including all of the current one */
    uint64_t budget;  /* value of `entered` at which `run` returns */
    uint64_t limit;   /* value of `entered` from which the start of a block needs a check */
    uint64_t elapsed; /* time that these blocks take, in units of the clock; sleep is not in it */
    uint64_t due;     /* value of `elapsed` from which the start of a block needs a check */
    uint64_t now;     /* exact value of `elapsed` before an access to a synchronised register */
    uint32_t stop;    /* enum ferrule_guest_stop */
    uint32_t block_address;
    uint32_t block_bytes;
    uint32_t paused;    /* enum ferrule_guest_pause: why ferrule_guest_on_block() ended it */
    uint32_t exception; /* unicorn's exception number; 0: none */
    uint32_t error;     /* enum uc_err, valid with FERRULE_GUEST_ERROR */

    struct ferrule_guest_fault fault;
    /* Performs an access outside the private peripheral bus; returns whether the device accepts it,
     * with the value of a read in `answer`. NULL: every access is accepted. */
    uint32_t (*ask)(uint64_t address, uint32_t bytes, uint32_t write, uint64_t value);
    uint64_t answer;
    int32_t register_ids[FERRULE_GUEST_REGISTERS]; /* unicorn's numbers */
    uint32_t window_count;
    uint32_t breakpoints; /* number of breakpoints; if nonzero, the breakpoint instruction stops it
                             too */
    uint32_t aligned;     /* registers known to be aligned at the start of the next block */
    uint32_t unaligned;   /* the instruction with an unaligned address, with bit 0 set; 0: none */
    uint32_t base;        /* its base register, and that register's value */
    uint32_t base_value;
    uint32_t base_mask; /* its bits that must be 0 */
    uint32_t site_count;
    uint32_t traps;       /* all must be aligned, as the cached blocks were decoded with it */
    uint32_t wants_traps; /* its present value */
    uint32_t
        unaligned_address; /* as far as it is known: that of the base, if the offset is aligned */
    uint32_t accessor;     /* the instruction that accesses a synchronised register */
    struct ferrule_guest_window windows[FERRULE_GUEST_WINDOWS];
    struct ferrule_guest_block cache[FERRULE_GUEST_CACHE];
    uint32_t sites[FERRULE_GUEST_SITES]; /* checked instructions, with bit 0 set; 0: free */
};

uint64_t ferrule_guest_bytes(void);

/* Returns the code at an address, or NULL if it does not lie in a memory. */
const uint8_t *ferrule_guest_code(const struct ferrule_guest *guest, uint32_t address,
                                  uint32_t bytes);

/* Returns where the cache has the block at an address, if it has it. */
static inline struct ferrule_guest_block *ferrule_guest_slot(struct ferrule_guest *guest,
                                                             uint32_t address)
{
    return &guest->cache[((address >> 1) ^ (address >> 15)) & (FERRULE_GUEST_CACHE - 1)];
}

uint32_t ferrule_guest_count(struct ferrule_guest *guest, uint32_t address, uint32_t bytes);
/* Lets unicorn execute a RAM from which the core has tried to fetch; returns false if it may do so
 * already, or if it is no RAM. Until then, unicorn makes the writes to it without a check. */
bool ferrule_guest_allow_code(struct ferrule_guest *guest, uint32_t address);

/* Return the exact values of `entered` and of `elapsed` before an instruction of the current block;
 * those at the block's end for an instruction outside of it. */
uint64_t ferrule_guest_executed(struct ferrule_guest *guest, uint32_t program_counter);
uint64_t ferrule_guest_elapsed(struct ferrule_guest *guest, uint32_t program_counter);

/* Takes back the instructions of the current block from one on, and their time. */
void ferrule_guest_rewind(struct ferrule_guest *guest, uint32_t program_counter);

uint32_t ferrule_guest_read(struct ferrule_guest *guest, enum ferrule_register which);
void ferrule_guest_write(struct ferrule_guest *guest, enum ferrule_register which, uint32_t value);

/* Reads or writes a word of a memory; returns false if it is not in memory or not writable. */
bool ferrule_guest_load(struct ferrule_guest *guest, uint32_t address, uint32_t *value);
bool ferrule_guest_store(struct ferrule_guest *guest, uint32_t address, uint32_t value);

/* Ends the run before the next block with a reason, unless it has one already. */
void ferrule_guest_stop(struct ferrule_guest *guest, enum ferrule_guest_stop reason);

/* Each architecture has these two. Returns what is not 0 if the next block begins with instructions
 * under an earlier condition, as within Arm's IT blocks. */
uint32_t ferrule_guest_condition(struct ferrule_guest *guest);

/* Clears that, which unicorn restores before a hook of memory and for a read of the program
 * counter, and which would affect the next block. */
void ferrule_guest_clear_condition(struct ferrule_guest *guest);

/* Callbacks; `guest` is the user data given to unicorn. */
void ferrule_guest_on_block(void *engine, uint64_t address, uint32_t bytes, void *guest);
bool ferrule_guest_on_refused(void *engine, int type, uint64_t address, int bytes, int64_t value,
                              void *guest);
void ferrule_guest_on_exception(void *engine, uint32_t number, void *guest);

/* Callbacks for device registers; `ask` has already performed the access when they are called. */
uint64_t ferrule_guest_answer(void *engine, uint64_t offset, unsigned bytes, void *guest);
void ferrule_guest_accept(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                          void *guest);

#endif
