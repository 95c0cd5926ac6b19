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

/* The core stays awake after a return to this handler, and sleeps after one from it. */
static void interrupted(void)
{
    ISPR = 1u << LINE_B;
    barrier();
    if (DOOM == 8) {
        (void)REGISTER(NOWHERE);
    }
}

static void nothing(void)
{
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
    case 3: /* no memory for the first words of the frame */
        __asm volatile("mov sp, %0\n\tsvc #0" ::"r"(0x21000010u));
        break;
    case 4: /* sleeps for ever: PRIMASK does not affect waking, and no interrupt is enabled */
        ISPR = 1u << LINE_A;
        __asm volatile("cpsid i\n\twfi");
        break;
    case 5:
        __asm volatile("cpsid i\n\tsvc #0" ::: "memory");
        break;
    case 7:
    case 8:
        handle(LINE0 + LINE_A, interrupted);
        handle(LINE0 + LINE_B, nothing);
        IPR[LINE_A] = 0x40;
        ISER = 1u << LINE_A | 1u << LINE_B;
        SCR = 2;
        ISPR = 1u << LINE_A;
        barrier();
        break;
    default:
        handle(HARD_FAULT, breakpoint);
        __asm volatile("bkpt #0");
        break;
    }
    for (;;) {
    }
}
