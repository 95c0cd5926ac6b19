/* SPDX-License-Identifier: Apache-2.0 */
/* The cycle counter of the data watchpoint and trace unit (Armv7-M ARM, C1.8); it counts the units
 * of the machine's clock while the core is awake. ferrule/emulation/unicorn/layout.py mirrors the
 * struct. */
#ifndef FERRULE_EMULATION_CYCLE_COUNTER_H
#define FERRULE_EMULATION_CYCLE_COUNTER_H

#include "guest.h"

struct ferrule_cycle_counter {
    struct ferrule_guest *guest;
    uint64_t since; /* guest->now when `value` was last updated */
    uint32_t value;
    uint32_t control;
    uint32_t trace_enabled; /* DEMCR.TRCENA, kept by the system control space */
    uint32_t reserved;
};

uint64_t ferrule_cycle_counter_bytes(void);

void ferrule_cycle_counter_enable(struct ferrule_cycle_counter *counter, uint32_t trace_enabled);

/* Callbacks; `unit` is the user data given to unicorn. */
uint64_t ferrule_cycle_counter_read(void *engine, uint64_t offset, unsigned bytes, void *unit);
void ferrule_cycle_counter_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                 void *unit);

#endif
