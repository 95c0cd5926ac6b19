/* SPDX-License-Identifier: Apache-2.0 */
#include "cycle_counter.h"

/* Registers of the data watchpoint and trace unit (Armv7-M ARM, C1.8). */
enum {
    DWT_CTRL = 0x0,
    DWT_CYCCNT = 0x4,
    DWT_CYCCNTENA = 1,
};

uint64_t ferrule_cycle_counter_bytes(void)
{
    return sizeof(struct ferrule_cycle_counter);
}

static void advance(struct ferrule_cycle_counter *counter)
{
    if (counter->trace_enabled != 0 && (counter->control & DWT_CYCCNTENA) != 0) {
        counter->value += (uint32_t)(counter->guest->now - counter->since);
    }
    counter->since = counter->guest->now;
}

uint64_t ferrule_cycle_counter_read(void *engine, uint64_t offset, unsigned bytes, void *unit)
{
    struct ferrule_cycle_counter *counter = unit;
    (void)engine;
    (void)bytes;
    if (offset == DWT_CYCCNT) {
        advance(counter);
        return counter->value;
    }
    return offset == DWT_CTRL ? counter->control : 0;
}

void ferrule_cycle_counter_write(void *engine, uint64_t offset, unsigned bytes, uint64_t value,
                                 void *unit)
{
    struct ferrule_cycle_counter *counter = unit;
    (void)engine;
    (void)bytes;
    advance(counter);
    if (offset == DWT_CTRL) {
        counter->control = (uint32_t)value & DWT_CYCCNTENA;
    } else if (offset == DWT_CYCCNT) {
        counter->value = (uint32_t)value;
    }
}

void ferrule_cycle_counter_enable(struct ferrule_cycle_counter *counter, uint32_t trace_enabled)
{
    advance(counter);
    counter->trace_enabled = trace_enabled;
}
