/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of fault, with its handler enabled and disabled. The handler resumes after the
 * fault. */
#include "misdeed.h"

#define NOWHERE 0x70000000u
#define DEVICE  0x40000000u

static uint32_t process_stack[64] __attribute__((aligned(8)));

static void misdeeds(void)
{
    say("undefined instruction\n");
    MISDEED("udf #0", "r"(0));
    say("undefined in an IT block\n");
    MISDEED("cmp %0, #0\n\titt eq\n\tmoveq r0, #1\n\t.inst.n 0xDE01", "r"(0));
    say("coprocessor\n");
    MISDEED("mcr p7, 0, r0, c0, c0, 0", "r"(0));
    say("unaligned exclusive\n");
    MISDEED("ldrex r0, [%0]", "r"(process_stack[0] + (uint32_t)process_stack + 1));
    say("read\n");
    MISDEED("ldr r0, [%0]", "r"(NOWHERE));
    say("byte read\n");
    MISDEED("ldrb r0, [%0]", "r"(NOWHERE + 3));
    say("write\n");
    MISDEED("str %0, [%0]", "r"(NOWHERE));
    say("write back\n");
    MISDEED("mov r0, %0\n\tstr r1, [r0, #8]!", "r"(NOWHERE));
    say("in an IT block\n");
    MISDEED("cmp %0, #0\n\titt ne\n\tmovne r0, #1\n\tldrne r0, [%0]", "r"(NOWHERE));
    say("multiple\n");
    MISDEED("ldmia %0, {r0, r1, r2}", "r"(NOWHERE));
    say("jump to nothing\n");
    MISDEED("bx %0", "r"(NOWHERE | 1u));
    say("jump to a device\n");
    MISDEED("bx %0", "r"(DEVICE | 1u));
    say("jump to Arm state\n");
    MISDEED("bx %0", "r"(CODE_BASE + 0x100u));
    say("breakpoint\n");
    MISDEED("bkpt #1", "r"(0));
}

static void broken_return(void)
{
    note("line", ipsr());
    __asm volatile("ldr r4, =resume_at\n\tldr r5, =1f + 1\n\tstr r5, [r4]\n\tb 2f\n\t.ltorg\n\t"
                   "2: mov r0, #0xFFFFFFF5\n\tbx r0\n\t1:" ::
                       : "r0", "r1", "r2", "r3", "r4", "r5", "r12", "lr", "cc", "memory");
    note("still", ipsr());
}

static void line(void)
{
    note("line", ipsr());
    MISDEED("udf #2", "r"(0));
}

int main(void)
{
    begin();
    handle(HARD_FAULT, fault);
    handle(MEM_MANAGE, fault);
    handle(BUS_FAULT, fault);
    handle(USAGE_FAULT, fault);
    handle(LINE0 + LINE_A, line);
    handle(LINE0 + LINE_B, broken_return);
    ISER = 1u << LINE_A | 1u << LINE_B;
    IPR[LINE_A] = 0x40;

    say("handlers off: all are hard faults\n");
    misdeeds();
    say("handlers on\n");
    SHCSR = 7u << 16;
    note("shcsr", SHCSR);
    misdeeds();
    say("handlers on, on the process stack\n");
    __asm volatile("msr psp, %0" ::"r"(process_stack + 64));
    set_control(2);
    misdeeds();
    set_control(0);

    say("in an interrupt, more urgent than the fault\n");
    SHPR[USAGE_FAULT] = 0x80;
    ISPR = 1u << LINE_A;
    barrier();
    say("in an interrupt, less urgent\n");
    SHPR[USAGE_FAULT] = 0x20;
    ISPR = 1u << LINE_A;
    barrier();
    say("with primask\n");
    __asm volatile("cpsid i" ::: "memory");
    MISDEED("udf #3", "r"(0));
    __asm volatile("cpsie i" ::: "memory");
    say("end\n");
    end();
}
