/* SPDX-License-Identifier: Apache-2.0 */
#include "systick.h"

enum {
    ENABLE = 1 << 0,
    TICKINT = 1 << 1,
    CLKSOURCE = 1 << 2,
    COUNTFLAG = 1 << 16,
};

#define COUNTER_MASK 0x00FFFFFFu
#define NO_REFERENCE (1u << 31) /* CALIB.NOREF */

void ferrule_systick_reset(struct ferrule_systick *systick)
{
    *systick = (struct ferrule_systick){.zero_at = FERRULE_NEVER, .control = CLKSOURCE};
}

void ferrule_systick_advance(struct ferrule_core *core, uint64_t time)
{
    struct ferrule_systick *systick = &core->systick;
    if (systick->zero_at > time) {
        return;
    }
    systick->control |= COUNTFLAG;
    if ((systick->control & TICKINT) != 0) {
        ferrule_set_put(&core->nvic.pending, FERRULE_SYSTICK, true);
        ferrule_core_look(core);
    }
    if (systick->reload == 0) {
        systick->value = 0;
        systick->zero_at = FERRULE_NEVER;
        return;
    }
    const uint64_t period = (uint64_t)systick->reload + 1;
    systick->zero_at += ((time - systick->zero_at) / period + 1) * period;
}

static uint32_t value_at(const struct ferrule_systick *systick, uint64_t time)
{
    if (systick->zero_at == FERRULE_NEVER) {
        return systick->value;
    }
    const uint64_t left = systick->zero_at - time;
    return left > systick->reload && left <= (uint64_t)systick->reload + 1 ? 0 : (uint32_t)left;
}

static void start(struct ferrule_systick *systick, uint64_t time)
{
    if (systick->value != 0) {
        systick->zero_at = time + systick->value;
    } else if (systick->reload != 0) {
        systick->zero_at = time + systick->reload + 1;
    }
}

uint32_t ferrule_systick_read(struct ferrule_core *core, uint32_t offset)
{
    struct ferrule_systick *systick = &core->systick;
    const uint64_t time = ferrule_core_exact_time(core);
    ferrule_systick_advance(core, time);
    const uint32_t control = systick->control;
    switch (offset) {
    case FERRULE_SYSTICK_CONTROL:
        systick->control &= ~(uint32_t)COUNTFLAG;
        return control;
    case FERRULE_SYSTICK_RELOAD:
        return systick->reload;
    case FERRULE_SYSTICK_VALUE:
        return value_at(systick, time);
    default:
        return NO_REFERENCE;
    }
}

void ferrule_systick_write(struct ferrule_core *core, uint32_t offset, uint32_t value)
{
    struct ferrule_systick *systick = &core->systick;
    const uint64_t time = ferrule_core_exact_time(core);
    ferrule_systick_advance(core, time);
    const bool ran = (systick->control & ENABLE) != 0;
    switch (offset) {
    case FERRULE_SYSTICK_CONTROL:
        systick->control = (systick->control & ~(uint32_t)(ENABLE | TICKINT)) |
                           (value & (uint32_t)(ENABLE | TICKINT));
        if (ran && (value & ENABLE) == 0) {
            systick->value = value_at(systick, time);
            systick->zero_at = FERRULE_NEVER;
        } else if (!ran && (value & ENABLE) != 0) {
            start(systick, time);
        }
        break;
    case FERRULE_SYSTICK_RELOAD:
        systick->reload = value & COUNTER_MASK;
        if (ran && systick->zero_at == FERRULE_NEVER) {
            start(systick, time);
        }
        break;
    case FERRULE_SYSTICK_VALUE:
        systick->value = 0;
        systick->control &= ~(uint32_t)COUNTFLAG;
        systick->zero_at = FERRULE_NEVER;
        if (ran) {
            start(systick, time);
        }
        break;
    default:
        break;
    }
    ferrule_core_look(core);
}

uint64_t ferrule_systick_next(const struct ferrule_systick *systick)
{
    return (systick->control & TICKINT) != 0 ? systick->zero_at : FERRULE_NEVER;
}
