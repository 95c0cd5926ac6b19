/* SPDX-License-Identifier: Apache-2.0 */
/* Supervisor calls with arguments and results, from both stacks and both privilege levels;
 * PendSV chained after them; the registers that an exception saves. */
#include "trace.h"

static uint32_t process_stack[64] __attribute__((aligned(8)));

__attribute__((used)) static void served(uint32_t *frame, uint32_t exc_return)
{
    const uint8_t immediate = ((const uint8_t *)frame[6])[-2];
    note("svc", immediate);
    note("ipsr", ipsr());
    note("exc_return", exc_return);
    note("control", control());
    note("r0", frame[0]);
    note("r1", frame[1]);
    note("r2", frame[2]);
    note("r3", frame[3]);
    note("r12", frame[4]);
    note("aligner", frame[7] & 1u << 9);
    note("interrupted", frame[7] & 0x1FFu);
    note("flags", frame[7] >> 27);
    frame[0] += frame[1];
    if (immediate == 7) {
        ICSR = PEND_PENDSV; /* taken when this handler returns */
        barrier();
    }
    if (immediate == 9) {
        set_control(0);
    }
}
HANDLER_WITH_FRAME(svcall, served)

static void pendsv(void)
{
    note("pendsv", ipsr());
    note("icsr", ICSR);
}

static void line(void)
{
    uint32_t result;
    note("line", ipsr());
    __asm volatile("mov r0, #30\n\tmov r1, #4\n\tsvc #2\n\tmov %0, r0"
                   : "=r"(result)::"r0", "r1", "r2", "r3", "r12", "lr", "memory");
    note("result", result);
}

#define CALL(number, result)                                                                       \
    __asm volatile("mov r0, #10\n\tmov r1, #11\n\tmov r2, #12\n\tmov r3, #13\n\tmov r12, #14\n\t"  \
                   "cmp r0, #10\n\tsvc #" #number "\n\tmov %0, r0"                                 \
                   : "=r"(result)                                                                  \
                   :                                                                               \
                   : "r0", "r1", "r2", "r3", "r12", "lr", "cc", "memory")

__attribute__((noinline)) static void on_process_stack(void)
{
    uint32_t result;
    CALL(4, result);
    note("result", result);
    set_control(control() | 1u);
    note("unprivileged", control());
    CALL(5, result);
    note("result", result);
    note("control", control());
    set_control(0); /* ignored without privilege */
    note("control", control());
    CALL(9, result);
    note("control", control());
}

int main(void)
{
    uint32_t result;
    uint32_t before;
    uint32_t after;
    begin();
    handle(SVCALL, svcall);
    handle(PENDSV, pendsv);
    handle(LINE0 + LINE_A, line);
    SHPR[PENDSV] = 0xFF;
    IPR[LINE_A] = 0x80;
    ISER = 1u << LINE_A;

    say("from the main stack\n");
    CALL(1, result);
    note("result", result);
    CALL(7, result);
    note("result", result);

    say("from an interrupt\n");
    ISPR = 1u << LINE_A;
    barrier();

    say("with a stack that is aligned to 4\n");
    __asm volatile(
        "mov r4, sp\n\tsub sp, #4\n\tmov %0, sp\n\tmov r0, #1\n\tmov r1, #2\n\tsvc #3\n\t"
        "mov %1, sp\n\tmov sp, r4"
        : "=r"(before), "=r"(after)
        :
        : "r0", "r1", "r2", "r3", "r4", "r12", "lr", "cc", "memory");
    note("moved", after - before);

    say("from the process stack\n");
    __asm volatile("msr psp, %0" ::"r"(process_stack + 64));
    set_control(2);
    on_process_stack();
    set_control(0);
    note("control", control());
    say("end\n");
    end();
}
