/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Time on a kernel that counts ticks: for adapters. A wait of n ticks ends at the nth tick,
 * and the first one may come at once. With the time since the last tick, its *phase*, the adapter
 * waits for as few ticks as possible; if the phase is unknown, for one more.
 */
#ifndef FERRULE_TICK_H
#define FERRULE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A phase that is not known. */
#define FERRULE_TICK_NO_PHASE UINT32_MAX

/** A clock that adds up ticks, because a count of ticks that wraps is no time unless a tick is a
 * whole number of microseconds; all zero at first. */
struct ferrule_tick_clock {
    uint32_t us;
    uint32_t rest; /* in fractions of a microsecond, of which a tick rate has one million */
};

/** @brief Add the ticks since the last call, less than 2^44, and return the time of the last tick
 * in microseconds, which wraps at 2^32. */
static inline uint32_t ferrule_tick_add(struct ferrule_tick_clock *clock, uint64_t ticks,
                                        uint32_t rate_hz)
{
    const uint64_t more = ticks * 1000000u + clock->rest;

    clock->us += (uint32_t)(more / rate_hz);
    clock->rest = (uint32_t)(more % rate_hz);
    return clock->us;
}

/** @brief Return the number of ticks of a wait that ends no earlier than `us` microseconds from
 * now, and at most a tick later, or two if the phase is unknown. */
static inline uint32_t ferrule_tick_count(uint32_t us, uint32_t phase_us, uint32_t rate_hz)
{
    const uint64_t passed = phase_us == FERRULE_TICK_NO_PHASE ? (1000000u + rate_hz - 1u) / rate_hz
                                                              : (uint64_t)phase_us + 1u;
    const uint64_t ticks = ((us + passed) * rate_hz + 999999u) / 1000000u;

    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX - 1u;
}

/** @brief Return whether a wait is too short for a kernel, and the clock fine enough to poll. */
static inline bool ferrule_tick_polls(uint32_t us, uint32_t phase_us, uint32_t rate_hz)
{
    return phase_us != FERRULE_TICK_NO_PHASE && (uint64_t)us * rate_hz < 1000000u;
}

/** @brief Return the phase in microseconds of a kernel whose tick is the core's own timer. Called
 * with the tick masked. */
static inline uint32_t ferrule_tick_core_us(uint32_t rate_hz)
{
    const struct ferrule_core_tick tick = ferrule_core_read_tick();

    if (tick.period == 0u) {
        return FERRULE_TICK_NO_PHASE;
    }
    return (uint32_t)((uint64_t)tick.passed * 1000000u / ((uint64_t)tick.period * rate_hz));
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_TICK_H */
