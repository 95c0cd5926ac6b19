/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ferrule/port.h on Zephyr: FERRULE_PORT_H names this file there.
 *
 * The stack is the running thread's. On native_sim, whose threads run on stacks of the host's,
 * nothing is known of it: its size is 0, and nothing is painted or measured.
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_PORT_H
#define FERRULE_PLATFORM_ZEPHYR_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>

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

/** @brief The address under which a bus master finds what the core has at `pointer`. Any context.
 */
static inline uint32_t ferrule_bus_address(const volatile void *pointer)
{
    return (uint32_t)(uintptr_t)pointer;
}

/** @brief Whatever was read and written before is so for every bus master. Any context. */
static inline void ferrule_port_barrier(void)
{
#if defined(CONFIG_CPU_CORTEX_M)
    __asm__ volatile("dsb" : : : "memory");
#else
    __sync_synchronize();
#endif
}

/** @brief Lowest address of the thread's stack. */
static inline uintptr_t ferrule_port_stack_limit(void)
{
#if defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
    return (uintptr_t)k_current_get()->stack_info.start;
#else
    return UINTPTR_MAX;
#endif
}

/** @brief One past the highest address of the thread's stack. */
static inline uintptr_t ferrule_port_stack_top(void)
{
#if defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
    return (uintptr_t)k_current_get()->stack_info.start + k_current_get()->stack_info.size;
#else
    return UINTPTR_MAX;
#endif
}

/** @brief The stack pointer, or an address at most one frame above it. */
static inline uintptr_t ferrule_port_stack_pointer(void)
{
#if defined(__arm__)
    uintptr_t pointer;
    __asm__ volatile("mov %0, sp" : "=r"(pointer));
    return pointer;
#else
    return (uintptr_t)__builtin_frame_address(0);
#endif
}

/** @brief Whether this is an interrupt. Any context. */
static inline bool ferrule_port_in_interrupt(void)
{
    return k_is_in_isr();
}

/** @brief Keep interrupts away for a few instructions; returns what ferrule_port_critical_exit()
 * needs. May be nested. Any context. */
static inline uint32_t ferrule_port_critical_enter(void)
{
    return irq_lock();
}

/** @brief Let interrupts in again, if they were before. */
static inline void ferrule_port_critical_exit(uint32_t masked)
{
    irq_unlock(masked);
}

/** @brief The running thread, never NULL. */
static inline const void *ferrule_port_thread(void)
{
    return k_current_get();
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_PORT_H */
