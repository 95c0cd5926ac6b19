/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The implementation of ferrule/port.h on Zephyr, selected by FERRULE_PORT_H.
 *
 * The stack is that of the running thread. On native_sim, whose threads run on stacks of the host,
 * its bounds are unknown: its size is 0, and it is neither painted nor measured.
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_PORT_H
#define FERRULE_PLATFORM_ZEPHYR_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zephyr/cache.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>

#include "ferrule/core.h"

#ifdef __cplusplus
extern "C" {
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
 * Any context.
 */
static inline void ferrule_port_barrier(void)
{
	ferrule_core_barrier();
}

/** @brief Return the lowest address of the thread's stack. */
static inline uintptr_t ferrule_port_stack_limit(void)
{
#if defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
	return (uintptr_t)k_current_get()->stack_info.start;
#else
	return UINTPTR_MAX;
#endif
}

/** @brief Return the address after the highest of the thread's stack. */
static inline uintptr_t ferrule_port_stack_top(void)
{
#if defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
	return (uintptr_t)k_current_get()->stack_info.start + k_current_get()->stack_info.size;
#else
	return UINTPTR_MAX;
#endif
}

/** @brief Return the stack pointer, or an address at most one frame above it. */
static inline uintptr_t ferrule_port_stack_pointer(void)
{
	return ferrule_core_stack_pointer();
}

/** @brief Return whether this is an interrupt. Any context. */
static inline bool ferrule_port_in_interrupt(void)
{
	return k_is_in_isr();
}

/** @brief Disable interrupts for a few instructions, and return the argument for
 * ferrule_port_critical_exit(). May be nested. Any context.
 */
static inline uint32_t ferrule_port_critical_enter(void)
{
	return irq_lock();
}

/** @brief Restore the interrupt state from before ferrule_port_critical_enter(). */
static inline void ferrule_port_critical_exit(uint32_t masked)
{
	irq_unlock(masked);
}

/** @brief Return the running thread, never NULL. */
static inline const void *ferrule_port_thread(void)
{
	return k_current_get();
}

#define FERRULE_PORT_HAS_CACHE

/** @brief Write to memory what the data cache holds of a range. Any context. */
static inline void ferrule_cache_clean(const volatile void *start, size_t bytes)
{
	/* fails on a core without a data cache only: CONFIG_FERRULE selects CACHE_MANAGEMENT */
	(void)sys_cache_data_flush_range((void *)(uintptr_t)start, bytes);
}

/** @brief Remove from the data cache what it holds of a range; changed lines are written to memory
 * first. Any context.
 */
static inline void ferrule_cache_invalidate(const volatile void *start, size_t bytes)
{
	(void)sys_cache_data_flush_and_invd_range((void *)(uintptr_t)start, bytes);
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_PORT_H */
