/* SPDX-License-Identifier: Apache-2.0 */
/* Faults raised by the core itself: while it saves or restores registers, and without privilege. */
#include "trace.h"

#define NOWHERE 0x70000000u

static uint32_t process_stack[64] __attribute__((aligned(8)));
static volatile uint32_t stack_to_use;

/* Every handler ends with a return to `resume_at` in thread mode, on the main stack. */
static volatile uint32_t resume_at;
static volatile uint32_t resume_stack;

__attribute__((used)) static void report(void)
{
    const uint32_t status = CFSR;
    note("fault", ipsr());
    note("cfsr", status);
    note("hfsr", HFSR & 2u);
    if ((status & 1u << 15) != 0) {
        note("bfar", BFAR);
    }
    note("shcsr", SHCSR & ~4u);
    CFSR = status;
    HFSR = HFSR;
    set_control(0);
}

/* Build an exception frame and return through it. */
__attribute__((naked)) static void fault(void)
{
    __asm volatile("bl report\n\tldr r0, =resume_stack\n\tldr r0, [r0]\n\tsub r0, #32\n\t"
                   "ldr r1, =resume_at\n\tldr r1, [r1]\n\tstr r1, [r0, #24]\n\t"
                   "mov r1, #0x01000000\n\tstr r1, [r0, #28]\n\t"
                   "msr msp, r0\n\tmvn r0, #6\n\tbx r0\n\t.ltorg");
}

static void line(void)
{
    note("line", ipsr());
    __asm volatile("msr psp, %0" ::"r"(stack_to_use));
}

/* Run an instruction that faults and resume after it, with the main stack as before. */
#define TRY(text, ...)                                                                             \
    __asm volatile("mrs r4, msp\n\tldr r5, =resume_stack\n\tstr r4, [r5]\n\tldr r4, =1f + 1\n\t"   \
                   "ldr r5, =resume_at\n\tstr r4, [r5]\n\t" text "\n\tdsb\n\tisb\n\tb 1f\n\t"      \
                   ".ltorg\n\t.p2align 1\n\t1:"                                                    \
                   :                                                                               \
                   : __VA_ARGS__                                                                   \
                   : "r0", "r1", "r2", "r3", "r4", "r5", "r12", "lr", "cc", "memory")

int main(void)
{
    begin();
    handle(HARD_FAULT, fault);
    handle(MEM_MANAGE, fault);
    handle(BUS_FAULT, fault);
    handle(USAGE_FAULT, fault);
    handle(LINE0 + LINE_A, line);
    ISER = 1u << LINE_A;
    SHCSR = 7u << 16;

    say("an interrupt saves to nothing\n");
    TRY("msr psp, %0\n\tmov r0, #2\n\tmsr control, r0\n\tisb\n\tstr %1, [%2]", "r"(NOWHERE),
        "r"(1u << LINE_A), "r"(&ISPR));
    note("control", control());
    ICPR = 1u << LINE_A;

    say("and the handler of bus faults is off\n");
    SHCSR = 5u << 16;
    TRY("msr psp, %0\n\tmov r0, #2\n\tmsr control, r0\n\tisb\n\tstr %1, [%2]", "r"(NOWHERE),
        "r"(1u << LINE_A), "r"(&ISPR));
    note("control", control());
    SHCSR = 7u << 16;

    say("an interrupt restores from nothing\n");
    stack_to_use = NOWHERE;
    TRY("msr psp, %0\n\tmov r0, #2\n\tmsr control, r0\n\tisb\n\tstr %1, [%2]",
        "r"(process_stack + 64), "r"(1u << LINE_A), "r"(&ISPR));
    note("control", control());

    say("a system register without privilege\n");
    TRY("msr psp, %0\n\tmov r0, #3\n\tmsr control, r0\n\tisb\n\tldr r0, [%1]",
        "r"(process_stack + 64), "r"(&ICSR));
    note("control", control());

    say("masks without privilege\n");
    TRY("msr psp, %0\n\tmov r0, #3\n\tmsr control, r0\n\tisb\n\tcpsid i\n\tmov r0, #32\n\t"
        "msr basepri, r0\n\tudf #0",
        "r"(process_stack + 64));
    uint32_t primask;
    uint32_t basepri;
    __asm volatile("mrs %0, primask\n\tmrs %1, basepri" : "=r"(primask), "=r"(basepri));
    note("primask", primask);
    note("basepri", basepri);

    say("an interrupt of code without privilege\n");
    stack_to_use = (uint32_t)(process_stack + 64) - 32u;
    CCR |= 2u; /* allow unprivileged code to write STIR */
    TRY("msr psp, %0\n\tmov r0, #3\n\tmsr control, r0\n\tisb\n\tstr %1, [%2]\n\tdsb\n\tisb\n\tudf "
        "#1",
        "r"(process_stack + 64), "r"(LINE_A), "r"(&STIR));
    say("end\n");
    end();
}
