/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The few places where the C sources touch the machine: registers, the stack, interrupts.
 *
 * Compile with -DFERRULE_PORT_H='"my_port.h"' to replace all of it; the replacement defines the
 * same names.
 */
#ifndef FERRULE_PORT_H_INCLUDED
#define FERRULE_PORT_H_INCLUDED

#ifdef FERRULE_PORT_H
#include FERRULE_PORT_H
#else

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Lowest and one past the highest address of the stack, from the linker script; their addresses
 * count. */
extern uint32_t ferrule_stack_limit[];
extern uint32_t ferrule_stack_top[];

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
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("dsb" : : : "memory");
#else
    __asm__ volatile("" : : : "memory");
#endif
}

/** @brief Lowest address of the stack. */
static inline uintptr_t ferrule_port_stack_limit(void)
{
    return (uintptr_t)ferrule_stack_limit;
}

/** @brief One past the highest address of the stack. */
static inline uintptr_t ferrule_port_stack_top(void)
{
    return (uintptr_t)ferrule_stack_top;
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

/** @brief Whether this is an exception or interrupt handler. Any context. */
static inline bool ferrule_port_in_interrupt(void)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number != 0;
#else
    return false; /* a process has none */
#endif
}

/** @brief Keep interrupts away for a few instructions; returns what ferrule_port_critical_exit()
 * needs. May be nested. Any context. */
static inline uint32_t ferrule_port_critical_enter(void)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    uint32_t masked;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(masked) : : "memory");
    return masked;
#else
    return 0;
#endif
}

/** @brief Let interrupts in again, if they were before. */
static inline void ferrule_port_critical_exit(uint32_t masked)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("msr primask, %0" : : "r"(masked) : "memory");
#else
    (void)masked;
#endif
}

/** @brief Who is running: another address for each of several threads or tasks, never NULL. One
 * thing runs here, so there is one. */
static inline const void *ferrule_port_thread(void)
{
    static const char self = 0;

    return &self;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PORT_H */
#endif /* FERRULE_PORT_H_INCLUDED */
