/* SPDX-License-Identifier: Apache-2.0 */
/* Measures stretches of known length with CYCCNT and sends the counts; the test knows the
 * lengths. */
#include "guest.h"

#define MEASURE(body)                                                                              \
    do {                                                                                           \
        uint32_t before;                                                                           \
        uint32_t after;                                                                            \
        __asm volatile("ldr %0, [%2]\n\t" body "ldr %1, [%2]\n\t"                                  \
                       : "=&r"(before), "=&r"(after)                                               \
                       : "r"(CYCCNT)                                                               \
                       : "r4", "r5", "cc", "memory");                                              \
        put_word(after - before);                                                                  \
    } while (0)

int main(void)
{
    start_uart();
    start_cycle_counter();
    MEASURE("");
    MEASURE("movw r4, #0x8480\n\tmovt r4, #0x1e\n\t"
            "1: add.w r5, r5, #1\n\tsubs r4, #1\n\tbne 1b\n\t");
    MEASURE("movw r4, #1000\n\t"
            "2: tst r4, #1\n\titte ne\n\taddne r5, #1\n\taddne.w r5, r5, #1\n\taddeq r5, #2\n\t"
            "subs r4, #1\n\tbne 2b\n\t");
    MEASURE(".rept 1500\n\tadd.w r5, r5, #1\n\tnop\n\t.endr\n\t");
    {
        uint32_t before;
        uint32_t after;
        uint32_t extra = 0;
        /* if ITSTATE remained after the block, the last additions would be suppressed */
        __asm volatile("ldr %0, [%3]\n\tcmp %3, #0\n\tittt ne\n\tldrne %1, [%3]\n\taddne %2, #1\n\t"
                       "addne %2, #1\n\tcmp %3, %3\n\tb 3f\n\t3: add %2, #1\n\tadd %2, #1\n\t"
                       : "=&r"(before), "=&r"(after), "+&r"(extra)
                       : "r"(CYCCNT)
                       : "cc", "memory");
        put_word(after - before);
        put_word(extra);
    }
    REGISTER(CYCCNT) = 1000;
    put_word(REGISTER(CYCCNT) - 1000u);
    REGISTER(0xE0001000u) = 0;
    MEASURE("nop\n\tnop\n\t");
    for (;;) {
        (void)get();
    }
}
