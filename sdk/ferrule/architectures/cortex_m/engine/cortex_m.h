/* SPDX-License-Identifier: Apache-2.0 */
/* A Cortex-M core beyond its instructions. */
#ifndef FERRULE_EMULATION_CORTEX_M_H
#define FERRULE_EMULATION_CORTEX_M_H

#include "core.h"
#include "nvic.h"

enum {
    FERRULE_CORE_WORDS = 0x400, /* registers of the system control space */
    FERRULE_CORE_REGIONS = 8,   /* regions of the MPU */
    FERRULE_FAULT_REGISTERS = 17,
};

/* SysTick (Armv7-M ARM, B3.3). It is not stepped; its value is computed from the time. */
struct ferrule_systick {
    uint64_t zero_at; /* time of the next zero; FERRULE_NEVER: stopped */
    uint32_t control;
    uint32_t reload;
    uint32_t value; /* valid while stopped */
    uint32_t reserved;
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
    int32_t register_ids[FERRULE_GUEST_REGISTERS]; /* unicorn's numbers of r0 to r12, sp, lr, pc,
                                                      xPSR */
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
    int32_t register_ids[FERRULE_GUEST_REGISTERS];
};

void ferrule_core_attach_trace(struct ferrule_core *core,
                               void (*enable)(void *unit, uint32_t enabled), void *unit);

/* Requests a check before the next block, since an exception may have become possible. */
void ferrule_core_look(struct ferrule_core *core);

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

#endif
