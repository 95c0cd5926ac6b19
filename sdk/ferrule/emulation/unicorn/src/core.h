/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a Cortex-M core beyond its instructions: exceptions, sleep and time. Time is counted
 * in units of the machine's clock, instructions or cycles, both those of executed instructions and
 * those that the core sleeps, so that all runs of a firmware are identical. Interrupts are taken
 * between two basic blocks.
 */
#ifndef FERRULE_EMULATION_CORE_H
#define FERRULE_EMULATION_CORE_H

#include "guest.h"
#include "nvic.h"

enum {
    FERRULE_CORE_TIMERS = 16,
    FERRULE_CORE_WORDS = 0x400, /* registers of the system control space */
    FERRULE_CORE_REGIONS = 8,   /* regions of the MPU */
    FERRULE_FAULT_REGISTERS = 17,
};

#define FERRULE_NEVER UINT64_MAX

/* SysTick (Armv7-M ARM, B3.3). It is not stepped; its value is computed from the time. */
struct ferrule_systick {
    uint64_t zero_at; /* time of the next zero; FERRULE_NEVER: stopped */
    uint32_t control;
    uint32_t reload;
    uint32_t value; /* valid while stopped */
    uint32_t reserved;
};

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
    uint32_t status;    /* the bits that the fault set in CFSR */
    uint32_t hard_status;
    uint32_t registers[FERRULE_FAULT_REGISTERS]; /* r0 to r12, sp, lr, pc, xPSR */
};

struct ferrule_core {
    struct ferrule_guest *guest;
    struct ferrule_nvic nvic;
    struct ferrule_systick systick;
    struct ferrule_timer timers[FERRULE_CORE_TIMERS];
    uint64_t slept;                                     /* time spent asleep */
    void (*enable_trace)(void *unit, uint32_t enabled); /* NULL: no trace unit */
    void *trace_unit;
    uint32_t architecture; /* 6, 7 or 8 */
    uint32_t asleep;       /* enum ferrule_sleep */
    uint32_t event;        /* event register of WFE */
    uint32_t masked; /* nonzero: a pending exception is masked by PRIMASK, BASEPRI or FAULTMASK */
    uint32_t words[FERRULE_CORE_WORDS]; /* registers that hold their written value, by offset / 4 */
    uint32_t regions[2][FERRULE_CORE_REGIONS]; /* RBAR; RASR or RLAR */
    struct ferrule_fault fault;
    int32_t register_ids[FERRULE_FAULT_REGISTERS]; /* unicorn's numbers, as in ferrule_fault */
};

enum ferrule_sleep {
    FERRULE_AWAKE = 0,
    FERRULE_SLEEPS_FOR_INTERRUPT = 1, /* WFI */
    FERRULE_SLEEPS_FOR_EVENT = 2,     /* WFE */
};

struct ferrule_core_config {
    uint32_t architecture;
    uint32_t lines;         /* number of interrupt lines */
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

/* Requests a check before the next block, since an exception may have become possible. */
void ferrule_core_look(struct ferrule_core *core);

/* Returns the time of the next timer or SysTick interrupt, or FERRULE_NEVER. */
uint64_t ferrule_core_next_event(const struct ferrule_core *core);

/* Returns the current execution priority, including the masks: only exceptions with a lower value
 * are taken. */
int32_t ferrule_core_priority(struct ferrule_core *core);

/* As above but without PRIMASK, which does not keep a core asleep. */
int32_t ferrule_core_waking_priority(struct ferrule_core *core);

/* Returns the exception to take now, or 0. */
uint32_t ferrule_core_takeable(struct ferrule_core *core);

bool ferrule_core_is_privileged(struct ferrule_core *core);

/* Sets the count of instructions and the time below which no block needs a check. */
void ferrule_core_set_limit(struct ferrule_core *core);

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
