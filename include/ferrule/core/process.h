/* SPDX-License-Identifier: Apache-2.0 */
/** @file A process of an operating system in place of a core: it has no interrupts and no counters
 * of its own. */
#ifndef FERRULE_CORE_PROCESS_H
#define FERRULE_CORE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void ferrule_core_barrier(void)
{
    __sync_synchronize();
}

static inline uintptr_t ferrule_core_stack_pointer(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

static inline bool ferrule_core_in_interrupt(void)
{
    return false;
}

static inline uint32_t ferrule_core_mask(void)
{
    return 0;
}

static inline void ferrule_core_unmask(uint32_t masked)
{
    (void)masked;
}

static inline void ferrule_core_sleep(uint32_t masked)
{
    (void)masked;
}

/** The core's timer as a kernel's tick; `period` is 0 if another timer ticks. */
struct ferrule_core_tick {
    uint32_t period;
    uint32_t passed;
};

static inline struct ferrule_core_tick ferrule_core_read_tick(void)
{
    const struct ferrule_core_tick none = {0, 0};

    return none;
}

static inline bool ferrule_core_cycles_start(void)
{
    return false;
}

static inline uint32_t ferrule_core_cycles(void)
{
    return 0;
}

static inline void ferrule_core_ticks_start(void)
{
}

static inline uint32_t ferrule_core_ticks(void)
{
    return 0;
}

static inline uint32_t ferrule_core_ticks_step(uint32_t *last)
{
    (void)last;
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_CORE_PROCESS_H */
