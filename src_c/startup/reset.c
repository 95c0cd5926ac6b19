/* SPDX-License-Identifier: Apache-2.0 */

#include "startup.h"

/* System control block (Armv7-M ARM, B3.2.2). */
#define SCB_VTOR  (*(volatile uint32_t *)0xE000ED08u)
#define SCB_CPACR (*(volatile uint32_t *)0xE000ED88u)

#define CPACR_FPU_FULL_ACCESS (0xFu << 20)

extern const uint32_t ferrule_vectors[];

/* Separate from ferrule_reset, so that ferrule_reset does not use the FPU before it is enabled. */
__attribute__((noinline, noreturn)) static void start(void)
{
    const uint32_t *from = ferrule_data_load;
    for (uint32_t *to = ferrule_data_start; (uintptr_t)to < (uintptr_t)ferrule_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = ferrule_bss_start; (uintptr_t)to < (uintptr_t)ferrule_bss_end; to++) {
        *to = 0;
    }

    (void)main(); /* a firmware has no caller to report to */
    for (;;) {
        ferrule_exit_halt();
    }
}

void ferrule_reset(void)
{
#if defined(__ARM_FEATURE_CMSE)
    __asm__ volatile("msr msplim, %0"
                     :
                     : "r"(ferrule_stack_limit)); /* Armv8-M: overflow faults at once */
#endif
    SCB_VTOR = (uint32_t)ferrule_vectors;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    SCB_CPACR |= CPACR_FPU_FULL_ACCESS;
#endif
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    start();
}

__attribute__((noinline)) void ferrule_exit_halt(void)
{
    __asm__ volatile("" : : : "memory");
    for (;;) {
        __asm__ volatile("wfi");
    }
}
