/* SPDX-License-Identifier: Apache-2.0 */
/** @file ferrule/port.h on the host: registers are what the test puts there. */
#ifndef FERRULE_FAKE_PORT_H
#define FERRULE_FAKE_PORT_H

#include <stdbool.h>
#include <stdint.h>

uint32_t ferrule_mmio_read32(uintptr_t address);
void ferrule_mmio_write32(uintptr_t address, uint32_t value);

/** Where a device finds what the test shares with it. */
uint32_t ferrule_bus_address(const volatile void *pointer);
void ferrule_port_barrier(void);

bool ferrule_port_in_interrupt(void);
/** The thread of the host, or what the test says it is. */
const void *ferrule_port_thread(void);
uint32_t ferrule_port_critical_enter(void);
void ferrule_port_critical_exit(uint32_t masked);

uintptr_t ferrule_port_stack_limit(void);
uintptr_t ferrule_port_stack_top(void);
uintptr_t ferrule_port_stack_pointer(void);

/** Reads and writes of registers; `write` is 0 or 1. Returns what was read. */
typedef uint32_t (*ferrule_fake_mmio)(uintptr_t address, uint32_t width, uint32_t write,
                                      uint32_t value);
void ferrule_fake_use_mmio(ferrule_fake_mmio mmio);
/** What answers ferrule_bus_address. */
void ferrule_fake_use_bus(uint32_t (*address_of)(uintptr_t pointer));

#endif /* FERRULE_FAKE_PORT_H */
