/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

#define UNUSED __attribute__((unused))

#if FERRULE_HAS_THUMB2
/* The plain C below, with all sums in registers: 14 instructions for eight products. r0: data, r1:
 * weights, r2: products left, r3: a weight, r12 and lr: the values of the two pixels, r4 to r11:
 * the sums. The arguments after the fourth are above the ten saved registers. */
#define CHANNEL(first, second)                                                                     \
    "ldrsb r3, [r1], #1\n\t"                                                                       \
    "mla " first ", r12, r3, " first "\n\t"                                                        \
    "mla " second ", lr, r3, " second "\n\t"
#define STEP                                                                                       \
    "ldrsh r12, [r0], #2\n\t"                                                                      \
    "ldrsh lr, [r0], #2\n\t" CHANNEL("r4", "r5") CHANNEL("r6", "r7") CHANNEL("r8", "r9")           \
        CHANNEL("r10", "r11")
#define SUMS                                                                                       \
    "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"                                          \
    "movs r4, #0\n\t"                                                                              \
    "mov r5, r4\n\t"                                                                               \
    "mov r6, r4\n\t"                                                                               \
    "mov r7, r4\n\t"                                                                               \
    "mov r8, r4\n\t"                                                                               \
    "mov r9, r4\n\t"                                                                               \
    "mov r10, r4\n\t"                                                                              \
    "mov r11, r4\n\t"                                                                              \
    "subs r2, #4\n\t"                                                                              \
    "blt 2f\n"                                                                                     \
    "1:\n\t" STEP STEP STEP STEP "subs r2, #4\n\t"                                                 \
    "bge 1b\n"                                                                                     \
    "2:\n\t"                                                                                       \
    "adds r2, #4\n\t"                                                                              \
    "beq 4f\n"                                                                                     \
    "3:\n\t" STEP "subs r2, #1\n\t"                                                                \
    "bne 3b\n"                                                                                     \
    "4:\n\t"                                                                                       \
    "ldr lr, [sp]\n\t" /* the fourth argument */
#define BIAS(first, second)                                                                        \
    "ldm lr!, {r0, r1, r2, r3, r12}\n\t"                                                           \
    "add " first ", r0, " first ", lsl #1\n\t"                                                     \
    "add " second ", r0, " second ", lsl #1\n\t"
#define STORE(first, second)                                                                       \
    "ldr r0, [sp, #44]\n\t"                                                                        \
    "ldr r1, [sp, #40]\n\t"                                                                        \
    "strb " second ", [r0, r12]\n\t"                                                               \
    "strb " first ", [r1, r12]\n\t"
#define PLAIN(first, second)                                                                       \
    BIAS(first, second)                                                                            \
    FERRULE_SCALE_PLAIN(first, "r0", "r1", "r2", "r3")                                             \
    FERRULE_SCALE_PLAIN(second, "r0", "r1", "r2", "r3")                                            \
    FERRULE_CLAMP_PLAIN(first)                                                                     \
    FERRULE_CLAMP_PLAIN(second)                                                                    \
    STORE(first, second)
#define GENERAL(first, second)                                                                     \
    BIAS(first, second)                                                                            \
    FERRULE_SCALE_GENERAL(first, "r0", "r1", "r2", "r3")                                           \
    FERRULE_SCALE_GENERAL(second, "r0", "r1", "r2", "r3")                                          \
    "ldrd r0, r1, [sp, #48]\n\t" FERRULE_CLAMP_GENERAL(first, "r0", "r1")                          \
        FERRULE_CLAMP_GENERAL(second, "r0", "r1") STORE(first, second)
#define RETURN "pop {r3, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n\t"

__attribute__((naked)) void ferrule_multiply_quad_plain(const int16_t *data UNUSED,
                                                        const int8_t *weights UNUSED,
                                                        int32_t products UNUSED,
                                                        const int32_t *scales UNUSED,
                                                        int8_t *first UNUSED, int8_t *second UNUSED)
{
    __asm__ volatile(SUMS PLAIN("r4", "r5") PLAIN("r6", "r7") PLAIN("r8", "r9") PLAIN("r10", "r11")
                         RETURN);
}

__attribute__((naked)) void
ferrule_multiply_quad(const int16_t *data UNUSED, const int8_t *weights UNUSED,
                      int32_t products UNUSED, const int32_t *scales UNUSED, int8_t *first UNUSED,
                      int8_t *second UNUSED, int32_t low UNUSED, int32_t high UNUSED)
{
    __asm__ volatile(SUMS GENERAL("r4", "r5") GENERAL("r6", "r7") GENERAL("r8", "r9")
                         GENERAL("r10", "r11") RETURN);
}

__attribute__((naked)) void ferrule_multiply_quad_sums(const int16_t *data UNUSED,
                                                       const int8_t *weights UNUSED,
                                                       int32_t products UNUSED,
                                                       int32_t *sums UNUSED)
{
    __asm__ volatile(SUMS "stm lr, {r4, r5, r6, r7, r8, r9, r10, r11}\n\t" RETURN);
}
#else
static void multiply(const int16_t *data, const int8_t *weights, int32_t products,
                     const int32_t *scales, int8_t *first, int8_t *second,
                     const struct ferrule_output_s8 *output, bool plain)
{
    for (int32_t c = 0; c < FERRULE_QUAD; ++c) {
        int32_t one = 0;
        int32_t other = 0;

        for (int32_t k = 0; k < products; ++k) {
            one += data[2 * k] * weights[FERRULE_QUAD * k + c];
            other += data[2 * k + 1] * weights[FERRULE_QUAD * k + c];
        }
        second[scales[FERRULE_PLAIN_SCALE_PLACE]] =
            ferrule_store_plain(other, scales, output, plain);
        first[scales[FERRULE_PLAIN_SCALE_PLACE]] = ferrule_store_plain(one, scales, output, plain);
        scales += FERRULE_PLAIN_SCALE_WORDS;
    }
}

void ferrule_multiply_quad_plain(const int16_t *data, const int8_t *weights, int32_t products,
                                 const int32_t *scales, int8_t *first, int8_t *second)
{
    const struct ferrule_output_s8 output = {INT8_MIN, INT8_MIN, INT8_MAX};

    multiply(data, weights, products, scales, first, second, &output, true);
}

void ferrule_multiply_quad(const int16_t *data, const int8_t *weights, int32_t products,
                           const int32_t *scales, int8_t *first, int8_t *second, int32_t low,
                           int32_t high)
{
    const struct ferrule_output_s8 output = {0, low, high}; /* the scales have the zero point */

    multiply(data, weights, products, scales, first, second, &output, false);
}

void ferrule_multiply_quad_sums(const int16_t *data, const int8_t *weights, int32_t products,
                                int32_t *sums)
{
    for (int32_t c = 0; c < FERRULE_QUAD; ++c) {
        sums[2 * c] = 0;
        sums[2 * c + 1] = 0;
        for (int32_t k = 0; k < products; ++k) {
            sums[2 * c] += data[2 * k] * weights[FERRULE_QUAD * k + c];
            sums[2 * c + 1] += data[2 * k + 1] * weights[FERRULE_QUAD * k + c];
        }
    }
}
#endif
