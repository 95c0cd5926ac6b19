/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>

#include "ferrule/core.h"
#include "ferrule/counter.h"
#include "ferrule/port.h"

/* Cores and emulators without a cycle counter read it as a constant, so the counter is accepted
 * only if it changes. */
static bool cycles_count(void)
{
    if (!ferrule_core_cycles_start()) {
        return false;
    }
    const uint32_t first = ferrule_core_cycles();
    for (uint32_t attempt = 0; attempt < 16u; attempt++) {
        if (ferrule_core_cycles() != first) {
            return true;
        }
    }
    return false;
}

#ifdef FERRULE_PORT_HAS_CYCLES
/* The port's clock owns the core's timer. */
static bool ticks_count(void)
{
    const uint32_t first = ferrule_port_cycles();
    for (uint32_t attempt = 0; attempt < 4096u; attempt++) {
        if (ferrule_port_cycles() != first) {
            return true;
        }
    }
    return false;
}
#else
/* Emulators may run the timer in steps of tens of instructions: try long enough. */
static bool ticks_count(void)
{
    ferrule_core_ticks_start();
    const uint32_t first = ferrule_core_ticks();
    for (uint32_t attempt = 0; attempt < 4096u; attempt++) {
        if (ferrule_core_ticks() != first) {
            return true;
        }
    }
    return false;
}
#endif

void ferrule_counter_start(struct ferrule_counter *counter)
{
    if (cycles_count()) {
        counter->source = FERRULE_COUNTER_DWT;
    } else if (ticks_count()) {
        counter->source = FERRULE_COUNTER_SYSTICK;
    } else {
        counter->source = FERRULE_COUNTER_NONE;
    }
    ferrule_counter_reset(counter);
}

void ferrule_counter_reset(struct ferrule_counter *counter)
{
    (void)ferrule_counter_read(counter); /* only for its effect on `last` and COUNTFLAG */
    counter->elapsed = 0;
}

#ifdef FERRULE_PORT_HAS_CYCLES
static uint32_t ticks_step(struct ferrule_counter *counter)
{
    const uint32_t now = ferrule_port_cycles();
    const uint32_t step = now - counter->last;
    counter->last = now;
    return step;
}
#else
static uint32_t ticks_step(struct ferrule_counter *counter)
{
    return ferrule_core_ticks_step(&counter->last);
}
#endif

uint64_t ferrule_counter_read(struct ferrule_counter *counter)
{
    if (counter->source == FERRULE_COUNTER_DWT) {
        const uint32_t now = ferrule_core_cycles();
        counter->elapsed += now - counter->last;
        counter->last = now;
    } else if (counter->source == FERRULE_COUNTER_SYSTICK) {
        counter->elapsed += ticks_step(counter);
    } else {
        /* nothing counts */
    }
    return counter->elapsed;
}
