/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file An implementation of ferrule/port.h for programs in which the link runs in a thread of a
 * kernel: compile with -DFERRULE_PORT_H='"ferrule/platform/cmsis_port.h"'.
 *
 * The link then paints and measures that thread's stack, whose bounds the program defines.
 */
#ifndef FERRULE_PLATFORM_CMSIS_PORT_H
#define FERRULE_PLATFORM_CMSIS_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The part of a thread's stack that may be painted; kernels keep a marker in its last word. */
struct ferrule_cmsis_stack {
    const void *limit; /* lowest address */
    const void *top;   /* one past the highest */
};

/** The stack of the thread that serves the link; defined by the program. */
extern const struct ferrule_cmsis_stack ferrule_cmsis_link_stack;

static inline uint32_t ferrule_mmio_read32(uintptr_t address)
{
    return *(const volatile uint32_t *)address;
}

static inline void ferrule_mmio_write32(uintptr_t address, uint32_t value)
{
    *(volatile uint32_t *)address = value;
}

static inline uint32_t ferrule_bus_address(const volatile void *pointer)
{
    return (uint32_t)(uintptr_t)pointer;
}

static inline void ferrule_port_barrier(void)
{
    ferrule_core_barrier();
}

static inline bool ferrule_port_in_interrupt(void)
{
    return ferrule_core_in_interrupt();
}

static inline uint32_t ferrule_port_critical_enter(void)
{
    return ferrule_core_mask();
}

static inline void ferrule_port_critical_exit(uint32_t masked)
{
    ferrule_core_unmask(masked);
}

/* Unused by the adapter, which queries the kernel. */
static inline const void *ferrule_port_thread(void)
{
    return &ferrule_cmsis_link_stack;
}

static inline uintptr_t ferrule_port_stack_limit(void)
{
    return (uintptr_t)ferrule_cmsis_link_stack.limit;
}

static inline uintptr_t ferrule_port_stack_top(void)
{
    return (uintptr_t)ferrule_cmsis_link_stack.top;
}

static inline uintptr_t ferrule_port_stack_pointer(void)
{
    return ferrule_core_stack_pointer();
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_CMSIS_PORT_H */
