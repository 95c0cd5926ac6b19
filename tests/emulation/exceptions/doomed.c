/* SPDX-License-Identifier: Apache-2.0 */
/* Ends in the way that DOOM selects. */
#include "trace.h"

#define NOWHERE 0x70000000u

static void hard_fault(void)
{
    (void)REGISTER(NOWHERE + 4); /* a fault within the fault handler */
}

static void breakpoint(void)
{
    note("hfsr", HFSR);
    end();
}

int main(void)
{
    begin();
    switch (DOOM) {
    case 1:
        handle(HARD_FAULT, hard_fault);
        (void)REGISTER(NOWHERE);
        break;
    case 2: /* no vector table */
        VTOR = NOWHERE;
        __asm volatile("svc #0");
        break;
    case 3: /* no memory for the stack */
        __asm volatile("mov sp, %0\n\tsvc #0" ::"r"(NOWHERE));
        break;
    case 4: /* sleeps for ever: PRIMASK does not affect waking, and no interrupt is enabled */
        ISPR = 1u << LINE_A;
        __asm volatile("cpsid i\n\twfi");
        break;
    case 5:
        __asm volatile("cpsid i\n\tsvc #0" ::: "memory");
        break;
    default:
        handle(HARD_FAULT, breakpoint);
        __asm volatile("bkpt #0");
        break;
    }
    for (;;) {
    }
}
