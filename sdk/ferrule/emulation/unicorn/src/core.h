/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Cortex-M core has besides instructions: exceptions, sleep and time. Time is counted in
 * instructions, those executed and those that a sleeping core would have executed, so that every
 * run of a firmware is the same. Interrupts are taken between two basic blocks.
 */
#ifndef FERRULE_EMULATION_CORE_H
#define FERRULE_EMULATION_CORE_H

#include "guest.h"
#include "nvic.h"

enum {
    FERRULE_CORE_TIMERS = 16,
    FERRULE_CORE_WORDS = 0x400, /* registers of the system control space */
    FERRULE_CORE_REGIONS = 8,   /* of the MPU */
    FERRULE_FAULT_REGISTERS = 17,
};

#define FERRULE_NEVER UINT64_MAX

/* SysTick (Armv7-M ARM, B3.3). It is not stepped: what it shows follows from the time. */
struct ferrule_systick {
    uint64_t zero_at; /* when it next counts down to zero; FERRULE_NEVER: it stands */
    uint32_t control;
    uint32_t reload;
    uint32_t value; /* while it stands */
    uint32_t reserved;
};

/* A device that wants to be called at a time. */
struct ferrule_timer {
    uint64_t due; /* FERRULE_NEVER: not at all */
    void (*expire)(void *context);
    void *context;
};

/* One fault as it was found, before any handler ran. */
struct ferrule_fault {
    struct ferrule_guest_fault access; /* type 0: no access was refused */
    uint64_t executed;
    uint32_t exception; /* 0: none so far */
    uint32_t status;    /* bits that the fault set in CFSR */
    uint32_t hard_status;
    uint32_t registers[FERRULE_FAULT_REGISTERS]; /* r0 to r12, sp, lr, pc, xPSR */
};

struct ferrule_core {
    struct ferrule_guest *guest;
    struct ferrule_nvic nvic;
    struct ferrule_systick systick;
    struct ferrule_timer timers[FERRULE_CORE_TIMERS];
    uint64_t slept; /* instructions that sleep took the time of */
    void (*enable_trace)(void *unit, uint32_t enabled); /* NULL: no trace unit */
    void *trace_unit;
    uint32_t architecture; /* 7 or 8 */
    uint32_t asleep;       /* enum ferrule_sleep */
    uint32_t event;        /* the event register of WFE */
    uint32_t masked; /* a pending exception waits for PRIMASK, BASEPRI or FAULTMASK to change */
    uint32_t words[FERRULE_CORE_WORDS]; /* registers that keep what is written, by offset / 4 */
    uint32_t regions[2][FERRULE_CORE_REGIONS]; /* RBAR; RASR or RLAR */
    struct ferrule_fault fault;
    int32_t register_ids[FERRULE_FAULT_REGISTERS]; /* unicorn's, as in ferrule_fault */
};

enum ferrule_sleep {
    FERRULE_AWAKE = 0,
    FERRULE_SLEEPS_FOR_INTERRUPT = 1, /* WFI */
    FERRULE_SLEEPS_FOR_EVENT = 2,     /* WFE */
};

struct ferrule_core_config {
    uint32_t architecture;
    uint32_t lines;         /* interrupt lines that exist */
    uint32_t priority_mask; /* implemented bits of a priority */
    uint32_t cpu_id;
    uint32_t vector_table;
    int32_t register_ids[FERRULE_FAULT_REGISTERS];
};

uint64_t ferrule_core_bytes(void);
uint64_t ferrule_core_config_bytes(void);
uint64_t ferrule_fault_bytes(void);
void ferrule_core_reset(struct ferrule_core *core, struct ferrule_guest *guest,
                        const struct ferrule_core_config *config);
void ferrule_core_attach_trace(struct ferrule_core *core,
                               void (*enable)(void *unit, uint32_t enabled), void *unit);

/* Instructions since reset, sleep included; `exact` within an access to a synchronised register,
 * else at the end of the current block. */
uint64_t ferrule_core_time(const struct ferrule_core *core);
uint64_t ferrule_core_exact_time(const struct ferrule_core *core);

/* Level of an interrupt line, counted from 0; any nonzero level is high. */
void ferrule_core_set_line(struct ferrule_core *core, uint32_t line, uint32_t level);

uint32_t ferrule_core_is_line_enabled(const struct ferrule_core *core, uint32_t line);

/* Has a timer call back at a time, or never; the block in which it falls due ends first. A time
 * that is over means now. */
void ferrule_core_set_timer(struct ferrule_core *core, uint32_t timer, uint64_t due,
                            void (*expire)(void *context), void *context);

/* Something changed that may make an exception possible: look before the next block. */
void ferrule_core_look(struct ferrule_core *core);

/* The moment of the next timer or SysTick interrupt, or FERRULE_NEVER. */
uint64_t ferrule_core_next_event(const struct ferrule_core *core);

/* Priority below which exceptions run now, masks included. */
int32_t ferrule_core_priority(struct ferrule_core *core);

/* The same without PRIMASK, which does not keep a core asleep. */
int32_t ferrule_core_waking_priority(struct ferrule_core *core);

/* An exception that may be taken now, or 0. */
uint32_t ferrule_core_takeable(struct ferrule_core *core);

bool ferrule_core_is_privileged(struct ferrule_core *core);

/* Remembers up to which instruction no block needs a look. */
void ferrule_core_set_limit(struct ferrule_core *core);

/* Whether a block should not begin now; asked when `limit` is reached. */
bool ferrule_core_wants_pause(struct ferrule_guest *guest);

/* Whether the access to a synchronised register is allowed. */
bool ferrule_core_permits(struct ferrule_guest *guest, uint32_t address);

/* Executes about so many instructions, less if something stops the guest. */
enum ferrule_guest_stop ferrule_core_run(struct ferrule_core *core, uint64_t instructions);

/* Executes one instruction, or enters one exception. */
enum ferrule_guest_stop ferrule_core_step(struct ferrule_core *core);

/* The last fault. */
const struct ferrule_fault *ferrule_core_fault(const struct ferrule_core *core);

#endif
