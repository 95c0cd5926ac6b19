/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

#if FERRULE_HAS_THUMB2
/* The plain C below, with all sums in registers: 17 instructions for eight products. */
#define CHANNEL(sum)                                                                               \
    "ldrsb r3, [r1], #1\n\t"                                                                       \
    "mla " sum ", r12, r3, " sum "\n\t"
#define STEP                                                                                       \
    "ldrsb r12, [r0], #1\n\t" CHANNEL("r4") CHANNEL("r5") CHANNEL("r6") CHANNEL("r7")              \
        CHANNEL("r8") CHANNEL("r9") CHANNEL("r10") CHANNEL("r11")

__attribute__((naked)) void ferrule_multiply_octet(const int8_t *row __attribute__((unused)),
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
#elif FERRULE_HAS_THUMB1
/* r0: row, r1: weights, r2: end of the row, r3: data, r4: weights of four channels, r5: a product;
 * r6 to r12 and lr: the sums. */
#define CHANNEL(sum)                                                                               \
    "sxtb r5, r4\n\t"                                                                              \
    "muls r5, r3, r5\n\t"                                                                          \
    "add " sum ", r5\n\t"                                                                          \
    "asrs r4, r4, #8\n\t"
#define LAST_CHANNEL(sum)                                                                          \
    "muls r4, r3, r4\n\t"                                                                          \
    "add " sum ", r4\n\t"

__attribute__((naked)) void ferrule_multiply_octet(const int8_t *row __attribute__((unused)),
                                                   const int8_t *weights __attribute__((unused)),
                                                   int32_t products __attribute__((unused)),
                                                   int32_t *sums __attribute__((unused)))
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r3, r4, r5, r6, r7, lr}\n\t"
                     "mov r4, r8\n\t"
                     "mov r5, r9\n\t"
                     "mov r6, r10\n\t"
                     "mov r7, r11\n\t"
                     "push {r4, r5, r6, r7}\n\t"
                     "adds r2, r2, r0\n\t"
                     "movs r6, #0\n\t"
                     "movs r7, #0\n\t"
                     "mov r8, r6\n\t"
                     "mov r9, r6\n\t"
                     "mov r10, r6\n\t"
                     "mov r11, r6\n\t"
                     "mov r12, r6\n\t"
                     "mov lr, r6\n"
                     "1:\n\t"
                     "movs r3, #0\n\t"
                     "ldrsb r3, [r0, r3]\n\t"
                     "adds r0, #1\n\t"
                     "ldm r1!, {r4}\n\t" CHANNEL("r6") CHANNEL("r7") CHANNEL("r8")
                         LAST_CHANNEL("r9") "ldm r1!, {r4}\n\t" CHANNEL("r10") CHANNEL("r11")
                             CHANNEL("r12") LAST_CHANNEL("lr") "cmp r0, r2\n\t"
                                                               "bne 1b\n\t"
                                                               "ldr r5, [sp, #16]\n\t"
                                                               "mov r0, r8\n\t"
                                                               "mov r1, r9\n\t"
                                                               "stm r5!, {r6, r7}\n\t"
                                                               "stm r5!, {r0, r1}\n\t"
                                                               "mov r0, r10\n\t"
                                                               "mov r1, r11\n\t"
                                                               "mov r2, r12\n\t"
                                                               "mov r3, lr\n\t"
                                                               "stm r5!, {r0, r1, r2, r3}\n\t"
                                                               "pop {r4, r5, r6, r7}\n\t"
                                                               "mov r8, r4\n\t"
                                                               "mov r9, r5\n\t"
                                                               "mov r10, r6\n\t"
                                                               "mov r11, r7\n\t"
                                                               "pop {r3, r4, r5, r6, r7, pc}\n\t");
}
#else
void ferrule_multiply_octet(const int8_t *row, const int8_t *weights, int32_t products,
                            int32_t *sums)
{
    for (int32_t i = 0; i < FERRULE_OCTET; ++i) {
        sums[i] = 0;
    }
    for (int32_t k = 0; k < products; ++k) {
        for (int32_t c = 0; c < FERRULE_OCTET; ++c) {
            sums[c] += row[k] * *weights++;
        }
    }
}
#endif
