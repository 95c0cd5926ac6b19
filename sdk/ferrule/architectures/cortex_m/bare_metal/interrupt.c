/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the vector table after the system exceptions (Armv7-M ARM, B1.5.3): all interrupts
 * call one function with the number of the line. */
#include "ferrule/platform/interrupt.h"

#define SYSTEM_EXCEPTIONS 16u

static void entry(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    ferrule_interrupt(number - SYSTEM_EXCEPTIONS);
}

#define EIGHT      entry, entry, entry, entry, entry, entry, entry, entry
#define THIRTY_TWO EIGHT, EIGHT, EIGHT, EIGHT

extern void (*const ferrule_interrupt_vectors[FERRULE_INTERRUPT_LINES])(void);

__attribute__((section(".ferrule_vectors_external"),
               used)) void (*const ferrule_interrupt_vectors[FERRULE_INTERRUPT_LINES])(void) = {
    THIRTY_TWO, THIRTY_TWO, THIRTY_TWO, THIRTY_TWO};
