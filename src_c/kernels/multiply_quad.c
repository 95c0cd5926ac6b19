/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

#if FERRULE_HAS_THUMB2
/* The plain C below, with all sums in registers: 14 instructions for eight products. */
#define CHANNEL(first, second)                                                                     \
    "ldrsb r3, [r1], #1\n\t"                                                                       \
    "mla " first ", r12, r3, " first "\n\t"                                                        \
    "mla " second ", lr, r3, " second "\n\t"
#define STEP                                                                                       \
    "ldrsh r12, [r0], #2\n\t"                                                                      \
    "ldrsh lr, [r0], #2\n\t" CHANNEL("r4", "r5") CHANNEL("r6", "r7") CHANNEL("r8", "r9")           \
        CHANNEL("r10", "r11")

__attribute__((naked)) void ferrule_multiply_quad(const int16_t *data __attribute__((unused)),
                                                  const int8_t *weights __attribute__((unused)),
                                                  int32_t products __attribute__((unused)),
                                                  int32_t *sums __attribute__((unused)))
{
    __asm__ volatile("push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"
                     "movs r4, #0\n\t"
                     "mov r5, r4\n\t"
                     "mov r6, r4\n\t"
                     "mov r7, r4\n\t"
                     "mov r8, r4\n\t"
                     "mov r9, r4\n\t"
                     "mov r10, r4\n\t"
                     "mov r11, r4\n\t"
                     "subs r2, #4\n\t"
                     "blt 2f\n"
                     "1:\n\t" STEP STEP STEP STEP "subs r2, #4\n\t"
                     "bge 1b\n"
                     "2:\n\t"
                     "adds r2, #4\n\t"
                     "beq 4f\n"
                     "3:\n\t" STEP "subs r2, #1\n\t"
                     "bne 3b\n"
                     "4:\n\t"
                     "ldr r3, [sp]\n\t"
                     "stm r3, {r4, r5, r6, r7, r8, r9, r10, r11}\n\t"
                     "pop {r3, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n\t");
}
#else
void ferrule_multiply_quad(const int16_t *data, const int8_t *weights, int32_t products,
                           int32_t *sums)
{
    for (int32_t i = 0; i < 2 * FERRULE_QUAD; ++i) {
        sums[i] = 0;
    }
    for (int32_t k = 0; k < products; ++k) {
        for (int32_t c = 0; c < FERRULE_QUAD; ++c) {
            sums[2 * c] += data[0] * *weights;
            sums[2 * c + 1] += data[1] * *weights;
            weights += 1;
        }
        data += 2;
    }
}
#endif
