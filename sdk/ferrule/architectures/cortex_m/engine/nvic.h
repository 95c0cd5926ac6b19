/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of exceptions (enabled, pending, active) and their order of priority (Armv7-M ARM,
 * B1.5.4 and B3.4), independent of registers and of a core.
 */
#ifndef FERRULE_EMULATION_NVIC_H
#define FERRULE_EMULATION_NVIC_H

#include <stdbool.h>
#include <stdint.h>

enum ferrule_exception {
    FERRULE_RESET = 1,
    FERRULE_NMI = 2,
    FERRULE_HARD_FAULT = 3,
    FERRULE_MEM_MANAGE = 4,
    FERRULE_BUS_FAULT = 5,
    FERRULE_USAGE_FAULT = 6,
    FERRULE_SVCALL = 11,
    FERRULE_DEBUG_MONITOR = 12,
    FERRULE_PENDSV = 14,
    FERRULE_SYSTICK = 15,
    FERRULE_FIRST_LINE = 16, /* exception of interrupt line 0 */
};

enum {
    FERRULE_EXCEPTIONS = 512,
    FERRULE_PRIORITY_NONE = 0x100, /* of thread mode, which every exception may interrupt */
};

/* A set of exceptions, one bit each. */
struct ferrule_exception_set {
    uint32_t words[FERRULE_EXCEPTIONS / 32];
};

struct ferrule_nvic {
    struct ferrule_exception_set enabled;
    struct ferrule_exception_set pending;
    struct ferrule_exception_set active;
    struct ferrule_exception_set high; /* lines with a high level */
    int16_t priority[FERRULE_EXCEPTIONS];
    uint32_t count;         /* number of exceptions, including the sixteen of the system */
    uint32_t priority_mask; /* implemented bits of a priority */
    uint32_t group;         /* AIRCR.PRIGROUP */
    uint32_t reserved;
};

bool ferrule_set_has(const struct ferrule_exception_set *set, uint32_t exception);
void ferrule_set_put(struct ferrule_exception_set *set, uint32_t exception, bool member);

void ferrule_nvic_reset(struct ferrule_nvic *nvic, uint32_t lines, uint32_t priority_mask);

/* Returns the part of a priority that determines preemption. */
int32_t ferrule_nvic_group_priority(const struct ferrule_nvic *nvic, int32_t priority);

/* Returns the group priority of the most urgent active exception, or FERRULE_PRIORITY_NONE. */
int32_t ferrule_nvic_active_priority(const struct ferrule_nvic *nvic);

/* Returns the pending exception that would be taken first, or 0; stores its group priority. */
uint32_t ferrule_nvic_next(const struct ferrule_nvic *nvic, int32_t *priority);

uint32_t ferrule_nvic_active_count(const struct ferrule_nvic *nvic);

/* Marks an exception as begun or ended; when it ends with its line high, it is pending again. */
void ferrule_nvic_activate(struct ferrule_nvic *nvic, uint32_t exception);
void ferrule_nvic_deactivate(struct ferrule_nvic *nvic, uint32_t exception);

/* Sets the level of a line; a rise makes its exception pending. */
void ferrule_nvic_set_level(struct ferrule_nvic *nvic, uint32_t exception, bool high);

/* Clears a pending interrupt for software; it stays pending if its line is high and it is not
 * active. */
void ferrule_nvic_clear_pending(struct ferrule_nvic *nvic, uint32_t exception);

#endif
