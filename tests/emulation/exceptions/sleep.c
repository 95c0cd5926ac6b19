/* SPDX-License-Identifier: Apache-2.0 */
/* WFI, WFE, sleep on exit, and SysTick waking the core. */
#include "trace.h"

static volatile uint32_t ticks;

static void systick(void)
{
    ++ticks;
    if (ticks % 8 == 0) {
        CSR = 0;
    }
}

static void last(void)
{
    note("line", ipsr());
    SCR = 0; /* so that the core stays awake */
}

static void start(uint32_t reload)
{
    RVR = reload;
    CVR = 0;
    CSR = 7;
}

int main(void)
{
    begin();
    handle(SYSTICK, systick);
    handle(LINE0 + LINE_A, last);
    ISER = 1u << LINE_A;
    note("reset", CSR & 3u); /* the board decides whether there is a reference clock */
    note("reload", RVR);

    say("wfi\n");
    start(5000);
    while (ticks < 8) {
        __asm volatile("wfi");
        note("awake", ticks);
    }
    note("control", CSR & ~4u);
    note("count flag", CSR >> 16 & 1u);

    say("wfi with primask\n");
    __asm volatile("cpsid i" ::: "memory");
    start(5000);
    __asm volatile("wfi");
    note("ticks", ticks);
    note("icsr", ICSR & ~0x1FFu);
    CSR = 0;
    __asm volatile("cpsie i\n\tisb" ::: "memory");
    note("ticks", ticks);

    say("wfi with something pending\n");
    __asm volatile("cpsid i" ::: "memory");
    ISPR = 1u << LINE_A;
    barrier();
    __asm volatile("wfi");
    say("awake\n");
    __asm volatile("cpsie i\n\tisb" ::: "memory");

    say("polling the flag\n");
    RVR = 3000;
    CVR = 0;
    CSR = 5;
    for (uint32_t i = 0; i < 3; ++i) {
        while ((CSR & 1u << 16) == 0) {
        }
        note("zero", CSR >> 16 & 1u);
    }
    note("within", CVR <= 3000);
    CSR = 0;
    note("ticks", ticks);

    say("wfe\n");
    __asm volatile("sev\n\twfe");
    say("awake\n");

    say("sleep on exit\n");
    SCR = 2;
    ticks = 0;
    start(5000);
    ISPR = 1u << LINE_A;
    barrier();
    note("end", SCR);
    CSR = 0;
    end();
}
