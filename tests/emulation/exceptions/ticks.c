/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the number of instructions between SysTick interrupts, and SysTick's reading over
 * stretches of known length. */
#include "trace.h"

enum { PERIOD = 1000, COUNT = 5 };

static volatile uint32_t at[COUNT];
static volatile uint32_t ticks;

static void systick(void)
{
    if (ticks < COUNT) {
        at[ticks] = REGISTER(CYCCNT);
    }
    ++ticks;
}

int main(void)
{
    uint32_t before;
    uint32_t after;
    begin();
    start_cycle_counter();
    handle(SYSTICK, systick);
    RVR = 100;
    CVR = 0;
    CSR = 5;
    __asm volatile("ldr %0, [%2]\n\t.rept 40\n\tnop\n\t.endr\n\tldr %1, [%2]"
                   : "=&r"(before), "=&r"(after)
                   : "r"(&CVR));
    note("went down by", before - after);
    note("within", before <= 100);
    CSR = 0;
    note("stands", CVR == CVR);
    RVR = PERIOD - 1;
    CVR = 0;
    CSR = 7;
    while (ticks < COUNT) {
    }
    CSR = 0;
    for (uint32_t i = 1; i < COUNT; ++i) {
        const uint32_t apart = at[i] - at[i - 1];
        note("on time", apart >= PERIOD - 4 && apart <= PERIOD + 4);
    }
    note("no drift", at[COUNT - 1] - at[0] - (COUNT - 1) * PERIOD + 4 <= 8);
    end();
}
