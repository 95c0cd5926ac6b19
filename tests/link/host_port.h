/* SPDX-License-Identifier: Apache-2.0 */
/** @file The port for the link's tests: registers are read and written by functions, the stack
 * is an array. */
#ifndef HOST_PORT_H
#define HOST_PORT_H

#include <stdint.h>

uint32_t host_mmio_read32(uintptr_t address);
void host_mmio_write32(uintptr_t address, uint32_t value);
extern uint32_t host_stack[1024];
extern uint32_t host_stack_pointer; /* index into host_stack */

static inline uint32_t ferrule_mmio_read32(uintptr_t address)
{
    return host_mmio_read32(address);
}

static inline void ferrule_mmio_write32(uintptr_t address, uint32_t value)
{
    host_mmio_write32(address, value);
}

static inline uintptr_t ferrule_port_stack_limit(void)
{
    return (uintptr_t)host_stack;
}

static inline uintptr_t ferrule_port_stack_top(void)
{
    return (uintptr_t)(host_stack + 1024);
}

static inline uintptr_t ferrule_port_stack_pointer(void)
{
    return (uintptr_t)(host_stack + host_stack_pointer);
}

#endif /* HOST_PORT_H */
