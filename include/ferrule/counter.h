/* SPDX-License-Identifier: Apache-2.0 */
/** @file A 64-bit counter of core cycles: DWT's cycle counter if it works, otherwise SysTick. */
#ifndef FERRULE_COUNTER_H
#define FERRULE_COUNTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The hardware behind a counter. */
enum ferrule_counter_source {
    FERRULE_COUNTER_NONE = 0,    /* no working counter on this core: every reading is 0 */
    FERRULE_COUNTER_DWT = 1,     /* CYCCNT, 32 bits: core cycles; emulators count instructions */
    FERRULE_COUNTER_SYSTICK = 2, /* SysTick, 24 bits, at the core's clock */
};

/** Owned by the caller; the fields other than `source` are private to counter.c. */
struct ferrule_counter {
    uint64_t elapsed; /* since the last reset */
    uint32_t last;    /* the hardware's value at the last reading */
    enum ferrule_counter_source source;
};

/**
 * @brief Choose and start the hardware counter, and reset the count to 0.
 *
 * Any privileged thread. SysTick is reconfigured if DWT does not count.
 */
void ferrule_counter_start(struct ferrule_counter *counter);

/** @brief Reset the count to 0. The thread that started the counter. */
void ferrule_counter_reset(struct ferrule_counter *counter);

/**
 * @brief Return the count since the last reset.
 *
 * The thread that started the counter. The hardware wraps silently, so fewer than 2^32 cycles (DWT)
 * or 2^24 ticks (SysTick) may pass between two readings, or between a reset and a reading. One
 * further SysTick wrap is detected if COUNTFLAG reports it, which is not guaranteed.
 */
uint64_t ferrule_counter_read(struct ferrule_counter *counter);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_COUNTER_H */
