/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities: preemption, tail-chaining, late arrival, groups, ties. */
#include "trace.h"

static void pend(uint32_t line)
{
    ISPR = 1u << line;
    barrier();
}

static void a(void)
{
    note("a in", ipsr());
    note("active", IABR);
    pend(LINE_B); /* more urgent: preempts */
    pend(LINE_C); /* less urgent: waits */
    note("pending", ISPR);
    note("icsr", ICSR);
    note("a out", ipsr());
}

static void b(void)
{
    note("b in", ipsr());
    note("active", IABR);
    note("icsr", ICSR);
    note("b out", ipsr());
}

static void c(void)
{
    note("c in", ipsr());
    note("icsr", ICSR);
    note("c out", ipsr());
}

static void d(void)
{
    note("d in", ipsr());
    pend(LINE_A);
    note("d out", ipsr());
}

static void prioritise(uint8_t pa, uint8_t pb, uint8_t pc, uint8_t pd)
{
    IPR[LINE_A] = pa;
    IPR[LINE_B] = pb;
    IPR[LINE_C] = pc;
    IPR[LINE_D] = pd;
    barrier();
}

static void all_at_once(void)
{
    ISPR = 1u << LINE_A | 1u << LINE_B | 1u << LINE_C | 1u << LINE_D;
    barrier();
}

int main(void)
{
    begin();
    handle(LINE0 + LINE_A, a);
    handle(LINE0 + LINE_B, b);
    handle(LINE0 + LINE_C, c);
    handle(LINE0 + LINE_D, d);
    ISER = 1u << LINE_A | 1u << LINE_B | 1u << LINE_C | 1u << LINE_D;
    note("enabled", ISER);
    note("also enabled", ICER);

    say("preemption and tail-chaining\n");
    prioritise(0x80, 0x40, 0xC0, 0xE0);
    pend(LINE_A);

    say("equal priorities do not preempt\n");
    prioritise(0x80, 0x80, 0x80, 0x80);
    pend(LINE_A);

    say("ties go by number\n");
    all_at_once();

    say("a less urgent one begins, a more urgent one comes\n");
    prioritise(0x20, 0x10, 0x30, 0x40);
    pend(LINE_D);

    say("groups: only the upper two bits preempt\n");
    AIRCR = 0x05FA0000u | 5u << 8;
    note("aircr", AIRCR & 0xFFFF0700u);
    prioritise(0x80, 0xA0, 0xBF, 0x81);
    pend(LINE_A);
    all_at_once();
    prioritise(0x80, 0x7F, 0xBF, 0xC0);
    pend(LINE_D);

    say("groups: none preempts\n");
    AIRCR = 0x05FA0000u | 7u << 8;
    prioritise(0x80, 0x00, 0x40, 0xC0);
    pend(LINE_D);
    AIRCR = 0x05FA0000u;

    say("disabled while pending\n");
    ICER = 1u << LINE_B;
    pend(LINE_B);
    note("pending", ISPR);
    note("icsr", ICSR);
    ICPR = 1u << LINE_B;
    ISER = 1u << LINE_B;
    barrier();
    note("pending", ISPR);
    STIR = LINE_B;
    barrier();
    say("end\n");
    end();
}
