/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

/*
 * One multiplication serves two pixels: with x = x0 + 2^16 * x1, the sum t of two products w * x is
 * t0 + 2^16 * t1, and t0 fits into 16 bits. So (t + 2^15) / 2^16, rounded down, is t1; the sum of
 * all t minus 2^16 times the sum of all t1 is the sum of all t0, modulo 2^32.
 */
#if FERRULE_HAS_THUMB1
/* r0: data, r1: weights, r2: weights of two products, r3, r4: data, then sums of two products, r5:
 * a weight, r6: end of the weights, r7: 2^15; r8, r9 and r10, r11: sums of t and of t1 of each
 * channel. */
__attribute__((naked)) void ferrule_multiply_duo(const uint32_t *data __attribute__((unused)),
                                                 const int32_t *weights __attribute__((unused)),
                                                 int32_t words __attribute__((unused)),
                                                 int32_t *sums __attribute__((unused)))
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r3, r4, r5, r6, r7, lr}\n\t"
                     "mov r4, r8\n\t"
                     "mov r5, r9\n\t"
                     "mov r6, r10\n\t"
                     "mov r7, r11\n\t"
                     "push {r4, r5, r6, r7}\n\t"
                     "lsls r6, r2, #2\n\t"
                     "adds r6, r6, r1\n\t"
                     "movs r7, #0\n\t"
                     "mov r8, r7\n\t"
                     "mov r9, r7\n\t"
                     "mov r10, r7\n\t"
                     "mov r11, r7\n\t"
                     "movs r7, #1\n\t"
                     "lsls r7, r7, #15\n"
                     "1:\n\t"
                     "ldm r1!, {r2}\n\t"
                     "ldm r0!, {r3, r4}\n\t"
                     "sxtb r5, r2\n\t"
                     "muls r5, r3, r5\n\t"
                     "asrs r2, r2, #8\n\t"
                     "mov r12, r5\n\t"
                     "sxtb r5, r2\n\t"
                     "muls r5, r4, r5\n\t"
                     "asrs r2, r2, #8\n\t"
                     "add r5, r12\n\t"
                     "add r8, r5\n\t"
                     "adds r5, r5, r7\n\t"
                     "asrs r5, r5, #16\n\t"
                     "add r9, r5\n\t"
                     "sxtb r5, r2\n\t"
                     "muls r3, r5, r3\n\t"
                     "asrs r2, r2, #8\n\t"
                     "muls r4, r2, r4\n\t"
                     "adds r3, r3, r4\n\t"
                     "add r10, r3\n\t"
                     "adds r3, r3, r7\n\t"
                     "asrs r3, r3, #16\n\t"
                     "add r11, r3\n\t"
                     "cmp r1, r6\n\t"
                     "bne 1b\n\t"
                     "mov r1, r9\n\t"
                     "lsls r2, r1, #16\n\t"
                     "mov r0, r8\n\t"
                     "subs r0, r0, r2\n\t"
                     "mov r3, r11\n\t"
                     "lsls r4, r3, #16\n\t"
                     "mov r2, r10\n\t"
                     "subs r2, r2, r4\n\t"
                     "ldr r4, [sp, #16]\n\t"
                     "stm r4!, {r0, r1, r2, r3}\n\t"
                     "pop {r4, r5, r6, r7}\n\t"
                     "mov r8, r4\n\t"
                     "mov r9, r5\n\t"
                     "mov r10, r6\n\t"
                     "mov r11, r7\n\t"
                     "pop {r3, r4, r5, r6, r7, pc}\n\t");
}
#else
static uint32_t times(uint32_t data, int32_t weight)
{
    return data * (uint32_t)weight;
}

void ferrule_multiply_duo(const uint32_t *data, const int32_t *weights, int32_t words,
                          int32_t *sums)
{
    uint32_t all[FERRULE_DUO] = {0, 0};
    int32_t second[FERRULE_DUO] = {0, 0};

    for (int32_t i = 0; i < words; ++i) {
        int32_t word = weights[i];

        for (int32_t c = 0; c < FERRULE_DUO; ++c) {
            const uint32_t two =
                times(data[2 * i], (int8_t)word) + times(data[2 * i + 1], (int8_t)(word >> 8));

            all[c] += two;
            second[c] += (int32_t)(two + 0x8000u) >> 16;
            word >>= 16;
        }
    }
    for (int32_t c = 0; c < FERRULE_DUO; ++c) {
        sums[2 * c] = (int32_t)(all[c] - ((uint32_t)second[c] << 16));
        sums[2 * c + 1] = second[c];
    }
}
#endif
