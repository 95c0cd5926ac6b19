/* SPDX-License-Identifier: Apache-2.0 */
/* Polls for input, and meanwhile sends a byte as a sign of life every 20 ticks. */
#include "trace.h"

static volatile uint32_t ticks;

static void systick(void)
{
    ++ticks;
}

int main(void)
{
    uint32_t seen = 0;
    begin();
    say("polls");
    note("", ipsr());
    handle(SYSTICK, systick);
    start_uart();
    RVR = 100000 - 1;
    CVR = 0;
    CSR = 7;
    for (;;) {
        if ((REGISTER(UART_BASE + 4u) & 2u) != 0) {
            break;
        }
        if (ticks - seen >= 20) {
            seen = ticks;
            put('*');
        }
    }
    end();
}
