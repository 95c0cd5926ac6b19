/* SPDX-License-Identifier: Apache-2.0 */
/** @file A 64-bit count of the core's work: DWT's cycle counter where it counts, else SysTick. */
#ifndef FERRULE_COUNTER_H
#define FERRULE_COUNTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a counter counts with. */
enum ferrule_counter_source {
    FERRULE_COUNTER_NONE = 0,    /* nothing on this core counts: every reading is 0 */
    FERRULE_COUNTER_DWT = 1,     /* CYCCNT, 32 bits: core cycles; emulators count instructions */
    FERRULE_COUNTER_SYSTICK = 2, /* SysTick, 24 bits, at the core's clock */
};

/** The caller owns it; fields are private to counter.c except `source`. */
struct ferrule_counter {
    uint64_t elapsed; /* since the last reset */
    uint32_t last;    /* the hardware's value at the last reading */
    enum ferrule_counter_source source;
};

/**
 * @brief Choose and start the hardware counter, and reset to 0.
 *
 * Any thread, privileged. It takes SysTick over when DWT does not count.
 */
void ferrule_counter_start(struct ferrule_counter *counter);

/** @brief Begin again at 0. The thread that started the counter. */
void ferrule_counter_reset(struct ferrule_counter *counter);

/**
 * @brief Return what was counted since the last reset.
 *
 * The thread that started the counter. The hardware wraps silently, so between two readings, or a
 * reset and a reading, less than 2^32 cycles (DWT) or 2^24 ticks (SysTick) must pass. One SysTick
 * wrap beyond that is still seen where COUNTFLAG shows it, which is not always.
 */
uint64_t ferrule_counter_read(struct ferrule_counter *counter);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_COUNTER_H */
