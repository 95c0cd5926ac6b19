/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a core beyond its instructions: exceptions, sleep and time; each architecture has its
 * own. Time is counted in units of the machine's clock, instructions or cycles, both those of
 * executed instructions and those that the core sleeps, so that all runs of a firmware are
 * identical. Interrupts are taken between two basic blocks.
 */
#ifndef FERRULE_EMULATION_CORE_H
#define FERRULE_EMULATION_CORE_H

#include "guest.h"

enum { FERRULE_CORE_TIMERS = 16 };

#define FERRULE_NEVER UINT64_MAX

/* A call scheduled by a device. */
struct ferrule_timer {
    uint64_t due; /* FERRULE_NEVER: not scheduled */
    void (*expire)(void *context);
    void *context;
};

/* A fault, recorded before any handler ran. */
struct ferrule_fault {
    struct ferrule_guest_fault access; /* type 0: no access was refused */
    uint64_t executed;
    uint32_t exception; /* 0: no fault yet */
    uint32_t status;    /* why, in words of the architecture */
    uint32_t hard_status;
    uint32_t registers[FERRULE_GUEST_REGISTERS]; /* in the architecture's order */
};

struct ferrule_core_config;

uint64_t ferrule_core_bytes(void);
uint64_t ferrule_core_config_bytes(void);
uint64_t ferrule_fault_bytes(void);
void ferrule_core_reset(struct ferrule_core *core, struct ferrule_guest *guest,
                        const struct ferrule_core_config *config);

/* Returns unicorn's number of a register with a number. */
int32_t ferrule_core_register(const struct ferrule_core *core, uint32_t number);

/* Returns whether the data cache is on. */
bool ferrule_core_caches(const struct ferrule_core *core);

/* Time since reset, including sleep: at the end of the current block, or exact,
 * which is valid only during an access to a synchronised register. */
uint64_t ferrule_core_time(const struct ferrule_core *core);
uint64_t ferrule_core_exact_time(const struct ferrule_core *core);

/* Sets the level of an interrupt line, counted from 0; any nonzero level is high. */
void ferrule_core_set_line(struct ferrule_core *core, uint32_t line, uint32_t level);

uint32_t ferrule_core_is_line_enabled(const struct ferrule_core *core, uint32_t line);

/* Schedules a timer's callback at a time, or never; the block in which it is due ends first. A
 * time in the past means now. */
void ferrule_core_set_timer(struct ferrule_core *core, uint32_t timer, uint64_t due,
                            void (*expire)(void *context), void *context);

/* Lets a core that is awake wait, as for a memory that a device uses. */
void ferrule_core_contend(struct ferrule_core *core, uint64_t units);

/* Returns the time of the next timer's call or interrupt, or FERRULE_NEVER. */
uint64_t ferrule_core_next_event(const struct ferrule_core *core);

/* Returns whether to stop before the next block; called once `limit` is reached. */
bool ferrule_core_wants_pause(struct ferrule_guest *guest);

/* Returns whether an access to a synchronised register is allowed. */
bool ferrule_core_permits(struct ferrule_guest *guest, uint32_t address);

/* Executes about `instructions` instructions, fewer if another reason stops the guest. */
enum ferrule_guest_stop ferrule_core_run(struct ferrule_core *core, uint64_t instructions);

/* Executes one instruction, or enters one exception. */
enum ferrule_guest_stop ferrule_core_step(struct ferrule_core *core);

/* Returns the last fault. */
const struct ferrule_fault *ferrule_core_fault(const struct ferrule_core *core);

#endif
