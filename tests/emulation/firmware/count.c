/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a loop of 6,000,001 instructions with this machine's counter; sends (source, count). */
#include "ferrule/counter.h"
#include "guest.h"

int main(void)
{
    struct ferrule_counter counter;
    start_uart();
    ferrule_counter_start(&counter);
    ferrule_counter_reset(&counter);
    __asm volatile("mov.w r4, #0\n\tmovw r4, #0x8480\n\tmovt r4, #0x1e\n\tsubs r4, #1\n\t"
                   "1: add.w r5, r5, #1\n\tsubs r4, #1\n\tbne 1b\n\t" ::
                       : "r4", "r5", "cc", "memory");
    const uint64_t count = ferrule_counter_read(&counter);
    put_word((uint32_t)counter.source);
    put_word((uint32_t)count);
    for (;;) {
        (void)get();
    }
}
