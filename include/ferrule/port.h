/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The few places where the C sources touch the machine: registers and the stack.
 *
 * Compile with -DFERRULE_PORT_H='"my_port.h"' to replace all of it; the replacement defines the
 * same names.
 */
#ifndef FERRULE_PORT_H_INCLUDED
#define FERRULE_PORT_H_INCLUDED

#ifdef FERRULE_PORT_H
#include FERRULE_PORT_H
#else

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

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PORT_H */
#endif /* FERRULE_PORT_H_INCLUDED */
