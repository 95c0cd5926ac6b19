/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point state survives exceptions, and EXC_RETURN tells whether a frame holds it. */
#include "trace.h"

static uint32_t process_stack[128] __attribute__((aligned(8)));

__attribute__((used)) static void interrupted(const uint32_t *frame, uint32_t exc_return)
{
    note("exc_return", exc_return);
    note("control", control());
    note("r0", frame[0]);
    /* overwrites the registers that a handler may change */
    __asm volatile("mov r0, #0x99\n\tvmov s0, r0\n\tvmov s1, r0\n\tvmov s14, r0\n\tvmov s15, r0\n\t"
                   "mov r0, #0x01000000\n\tvmsr fpscr, r0" ::
                       : "r0", "s0", "s1", "s14", "s15");
    note("control", control());
}
HANDLER_WITH_FRAME(line, interrupted)

static void without(void)
{
    note("without", control());
}

static void give_privilege(void)
{
    set_control(0);
}

__attribute__((noinline)) static void with_float(void)
{
    uint32_t s0;
    uint32_t s1;
    uint32_t s15;
    uint32_t s31;
    uint32_t status;
    __asm volatile("mov r1, #0x10\n\tvmov s0, r1\n\tmov r1, #0x11\n\tvmov s1, r1\n\t"
                   "mov r1, #0x1f\n\tvmov s15, r1\n\tmov r1, #0x3f\n\tvmov s31, r1\n\t"
                   "mov r1, #0x02000000\n\tvmsr fpscr, r1\n\t"
                   "mov r0, #0x77\n\tstr %6, [%5]\n\tdsb\n\tisb\n\t"
                   "vmov %0, s0\n\tvmov %1, s1\n\tvmov %2, s15\n\tvmov %3, s31\n\tvmrs %4, fpscr"
                   : "=&r"(s0), "=&r"(s1), "=&r"(s15), "=&r"(s31), "=&r"(status)
                   : "r"(&ISPR), "r"(1u << LINE_A)
                   : "r0", "r1", "s0", "s1", "s15", "s31", "memory");
    note("s0", s0);
    note("s1", s1);
    note("s15", s15);
    note("s31", s31);
    note("fpscr", status);
    note("control", control());
}

int main(void)
{
    begin();
    handle(LINE0 + LINE_A, line);
    handle(LINE0 + LINE_B, without);
    handle(SVCALL, give_privilege);
    ISER = 1u << LINE_A | 1u << LINE_B;
    note("control", control());
    say("no context yet\n");
    ISPR = 1u << LINE_B;
    barrier();
    note("control", control());
    say("from the main stack\n");
    with_float();
    ISPR = 1u << LINE_B;
    barrier();
    say("given up\n");
    set_control(0);
    ISPR = 1u << LINE_A;
    barrier();
    note("control", control());
    say("from the process stack\n");
    __asm volatile("msr psp, %0" ::"r"(process_stack + 128));
    set_control(2);
    with_float();
    set_control(3);
    say("without privilege\n");
    note("control", control());
    __asm volatile("svc #0" ::: "memory");
    note("control", control());
    end();
}
