/* SPDX-License-Identifier: Apache-2.0 */
/** @file Linker symbols, the vector table and handlers shared by the start-up sources. */
#ifndef FERRULE_STARTUP_H
#define FERRULE_STARTUP_H

#include <stdint.h>

/* Addresses that the linker script defines. */
extern uint32_t ferrule_stack_limit[];
extern uint32_t ferrule_stack_top[];
/* Addresses below the stack that nothing may access, and the binary logarithm of their number; 0 if
 * there are none. */
extern uint8_t ferrule_stack_guard[] __attribute__((weak));
extern uint8_t ferrule_stack_guard_log2[] __attribute__((weak));
extern uint32_t ferrule_data_start[];
extern uint32_t ferrule_data_end[];
extern const uint32_t ferrule_data_load[];
extern uint32_t ferrule_bss_start[];
extern uint32_t ferrule_bss_end[];

/* An entry of a vector table: the first one is the stack's top, the others are handlers. */
union vector {
    uint32_t *stack;
    void (*handler)(void);
};

/* The system exceptions; a vendor's start-up code has its own table instead. */
extern const union vector ferrule_vectors[16];

/** @brief The reset handler; calls main. */
void ferrule_reset(void);

/** @brief Loop forever; the core stays here after main has returned. */
void ferrule_exit_halt(void);

/** @brief Record a fault, or an exception without a handler, and halt. */
void ferrule_fault_entry(void);

/* Weak: a firmware that handles one of these exceptions defines the function. */
void ferrule_svcall_handler(void);
void ferrule_pendsv_handler(void);
void ferrule_systick_handler(void);

int main(void);

#endif /* FERRULE_STARTUP_H */
