/* SPDX-License-Identifier: Apache-2.0 */
/* SysTick, which counts instructions and has no reference clock (Armv7-M ARM, B3.3). */
#ifndef FERRULE_EMULATION_SYSTICK_H
#define FERRULE_EMULATION_SYSTICK_H

#include "cortex_m.h"

enum {
    FERRULE_SYSTICK_CONTROL = 0x010,
    FERRULE_SYSTICK_RELOAD = 0x014,
    FERRULE_SYSTICK_VALUE = 0x018,
    FERRULE_SYSTICK_CALIBRATION = 0x01C,
};

void ferrule_systick_reset(struct ferrule_systick *systick);
uint32_t ferrule_systick_read(struct ferrule_core *core, uint32_t offset);
void ferrule_systick_write(struct ferrule_core *core, uint32_t offset, uint32_t value);

/* Advances to a time; makes its exception pending if it has counted to zero. */
void ferrule_systick_advance(struct ferrule_core *core, uint64_t time);

/* Returns the time at which its exception becomes pending, or FERRULE_NEVER. */
uint64_t ferrule_systick_next(const struct ferrule_systick *systick);

#endif
