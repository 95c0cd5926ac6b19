/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The machine-dependent parts of the C sources: registers, the stack, interrupts, the cache.
 *
 * Compile with -DFERRULE_PORT_H='"my_port.h"' to replace this file; the replacement defines the
 * same names. It may leave out the functions of the data cache, which are then those below; one
 * that has its own also defines FERRULE_PORT_HAS_CACHE. It may leave out the clock; one that has a
 * clock defines FERRULE_PORT_HAS_CLOCK and the three functions below, ferrule_port_now_us,
 * ferrule_port_alarm and ferrule_port_sleep. If its clock is SysTick, it also defines
 * FERRULE_PORT_HAS_CYCLES and ferrule_port_cycles, because src_c/runtime/counter.c would otherwise
 * set up SysTick for itself.
 *
 * The clock of this file is SysTick, if FERRULE_CLOCK_HZ is the frequency of the core's clock; the
 * program is then linked with the architecture's timer.c, which a replacement may keep by defining
 * FERRULE_PORT_USES_SYSTICK, too. Without FERRULE_CLOCK_HZ, there is no clock.
 *
 * With FERRULE_PORT_THREAD, the link runs in a thread of a kernel, to which SysTick belongs: the
 * program defines the bounds of that thread's stack, and ferrule_port_cycles asks the kernel.
 */
#ifndef FERRULE_PORT_H_INCLUDED
#define FERRULE_PORT_H_INCLUDED

#ifdef FERRULE_PORT_H
#include FERRULE_PORT_H
#else

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef FERRULE_PORT_THREAD
/** The stack of the thread that serves the link; defined by the program. */
struct ferrule_port_stack {
    const void *limit; /* lowest address */
    const void *top;   /* one past the highest */
};
extern const struct ferrule_port_stack ferrule_port_link_stack;
#else
/** The lowest address of the stack and the address after its highest, from the linker script; only
 * the addresses of these symbols are used. */
extern uint32_t ferrule_stack_limit[];
extern uint32_t ferrule_stack_top[];
#endif

/** @brief Read a register; `address` is a multiple of 4. Any context. */
static inline uint32_t ferrule_mmio_read32(uintptr_t address)
{
    return *(const volatile uint32_t *)address;
}

/** @brief Write a register; `address` is a multiple of 4. Any context. */
static inline void ferrule_mmio_write32(uintptr_t address, uint32_t value)
{
    *(volatile uint32_t *)address = value;
}

/** @brief Return the address at which a bus master accesses the memory at the core's `pointer`. Any
 * context.
 */
static inline uint32_t ferrule_bus_address(const volatile void *pointer)
{
    return (uint32_t)(uintptr_t)pointer;
}

/** @brief Complete all earlier memory accesses before any later one, as seen by every bus master.
 * Any context. */
static inline void ferrule_port_barrier(void)
{
    ferrule_core_barrier();
}

/** @brief Return the lowest address of the stack. */
static inline uintptr_t ferrule_port_stack_limit(void)
{
#ifdef FERRULE_PORT_THREAD
    return (uintptr_t)ferrule_port_link_stack.limit;
#else
    return (uintptr_t)ferrule_stack_limit;
#endif
}

/** @brief Return the address after the highest of the stack. */
static inline uintptr_t ferrule_port_stack_top(void)
{
#ifdef FERRULE_PORT_THREAD
    return (uintptr_t)ferrule_port_link_stack.top;
#else
    return (uintptr_t)ferrule_stack_top;
#endif
}

/** @brief Return the stack pointer, or an address at most one frame above it. */
static inline uintptr_t ferrule_port_stack_pointer(void)
{
    return ferrule_core_stack_pointer();
}

/** @brief Return whether this is an exception or interrupt handler. Any context. */
static inline bool ferrule_port_in_interrupt(void)
{
    return ferrule_core_in_interrupt();
}

/** @brief Disable interrupts for a few instructions, and return the argument for
 * ferrule_port_critical_exit(). May be nested. Any context. */
static inline uint32_t ferrule_port_critical_enter(void)
{
    return ferrule_core_mask();
}

/** @brief Restore the interrupt state from before ferrule_port_critical_enter(). */
static inline void ferrule_port_critical_exit(uint32_t masked)
{
    ferrule_core_unmask(masked);
}

/** @brief Return an address that identifies the running thread or task, never NULL. This port has a
 * single thread, so the address is always the same. */
static inline const void *ferrule_port_thread(void)
{
    static const char self = 0;

    return &self;
}

#ifdef FERRULE_CLOCK_HZ
#define FERRULE_PORT_HAS_CLOCK
#define FERRULE_PORT_HAS_CYCLES
#define FERRULE_PORT_USES_SYSTICK

/** @brief Return the time in microseconds; it wraps at 2^32. Starts the clock at the first call.
 * Any context. */
uint32_t ferrule_port_now_us(void);

/** @brief Let an interrupt come after this time; it may come earlier. Called with interrupts
 * masked. */
void ferrule_port_alarm(uint32_t after_us);

/** @brief Return the core's cycles, including those of sleep; they wrap at 2^32. Any context. */
uint32_t ferrule_port_cycles(void);

/** @brief Sleep until an interrupt is pending, then restore the interrupt state from before
 * ferrule_port_critical_enter() and let the interrupt run. Called with interrupts masked, so that
 * none can come between the caller's last look and the sleep. */
static inline void ferrule_port_sleep(uint32_t masked)
{
    ferrule_core_sleep(masked);
}
#elif defined(FERRULE_PORT_THREAD)
#define FERRULE_PORT_HAS_CYCLES

/** @brief Return the core's cycles by the kernel's ticks; they wrap at 2^32. A thread. */
uint32_t ferrule_port_cycles(void);
#endif /* FERRULE_CLOCK_HZ */

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PORT_H */

#ifndef FERRULE_PORT_HAS_CACHE

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef FERRULE_CACHE_LINE
#include "ferrule/core.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* FERRULE_CACHE_LINE is the number of bytes in a line of the data cache, a power of two. Only
 * firmware for a core with such a cache defines it; without it, the functions do nothing. */
#ifdef FERRULE_CACHE_LINE
static inline void ferrule_cache_maintain(uintptr_t start, size_t bytes, bool removes)
{
    if (bytes == 0u) {
        return;
    }
    ferrule_port_barrier();
    ferrule_core_cache_maintain(start, bytes, removes);
    ferrule_port_barrier();
    ferrule_core_synchronise();
}
#endif

/** @brief Write to memory what the data cache holds of a range, so that a device reads what the
 * core has written. Any context. */
static inline void ferrule_cache_clean(const volatile void *start, size_t bytes)
{
#ifdef FERRULE_CACHE_LINE
    ferrule_cache_maintain((uintptr_t)start, bytes, false);
#else
    (void)start;
    (void)bytes;
#endif
}

/** @brief Remove from the data cache what it holds of a range, so that the core reads what a device
 * writes. A line that the core has changed is written to memory first: neither a neighbour in the
 * first or last line is lost, nor the result of a device that is software on the core. A device
 * must therefore not write to the range before a first call, nor the core read it before a second.
 * Any context. */
static inline void ferrule_cache_invalidate(const volatile void *start, size_t bytes)
{
#ifdef FERRULE_CACHE_LINE
    ferrule_cache_maintain((uintptr_t)start, bytes, true);
#else
    (void)start;
    (void)bytes;
#endif
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PORT_HAS_CACHE */
#endif /* FERRULE_PORT_H_INCLUDED */
