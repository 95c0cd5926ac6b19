/* SPDX-License-Identifier: Apache-2.0 */
/** @file ferrule/port.h on the host: the test provides the registers. */
#ifndef FERRULE_FAKE_PORT_H
#define FERRULE_FAKE_PORT_H

#include <stdbool.h>
#include <stdint.h>

uint32_t ferrule_mmio_read32(uintptr_t address);
void ferrule_mmio_write32(uintptr_t address, uint32_t value);

/** Return the bus address of memory that the test shares with devices. */
uint32_t ferrule_bus_address(const volatile void *pointer);
void ferrule_port_barrier(void);

#define FERRULE_PORT_HAS_CLOCK
/** Return the virtual time. */
uint32_t ferrule_port_now_us(void);
/** Set the time at which the next sleep ends; a misuse unless interrupts are masked. */
void ferrule_port_alarm(uint32_t after_us);
/** Unmask interrupts, and wait for one or the alarm; a misuse unless interrupts are masked. */
void ferrule_port_sleep(uint32_t masked);

bool ferrule_port_in_interrupt(void);
/** Return the host thread, or the thread that the test has selected. */
const void *ferrule_port_thread(void);
uint32_t ferrule_port_critical_enter(void);
void ferrule_port_critical_exit(uint32_t masked);

uintptr_t ferrule_port_stack_limit(void);
uintptr_t ferrule_port_stack_top(void);
uintptr_t ferrule_port_stack_pointer(void);

/** Handler of register accesses; `write` is 0 or 1. Returns the value read. */
typedef uint32_t (*ferrule_fake_mmio)(uintptr_t address, uint32_t width, uint32_t write,
                                      uint32_t value);
void ferrule_fake_use_mmio(ferrule_fake_mmio mmio);
/** Set the function behind ferrule_bus_address(). */
void ferrule_fake_use_bus(uint32_t (*address_of)(uintptr_t pointer));

#endif /* FERRULE_FAKE_PORT_H */
