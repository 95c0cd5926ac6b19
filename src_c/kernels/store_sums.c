/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/columns.h"

#define UNUSED __attribute__((unused))

#if FERRULE_HAS_THUMB2
/* r0: sums, r1: values left, r2: the output, r4 to r7: constants of the channel, r8 and r9: limits,
 * r10 and r11: sums, r12: free, lr: bytes between outputs. The arguments after the fourth are above
 * the ten saved registers. */
#define ENTRY                                                                                      \
    "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"                                          \
    "ldm r2, {r4, r5, r6, r7}\n\t"                                                                 \
    "mov r2, r3\n\t"                                                                               \
    "ldr lr, [sp, #40]\n\t"
#define TWO(scale, clamp)                                                                          \
    "subs r1, #2\n\t"                                                                              \
    "blt 2f\n"                                                                                     \
    "1:\n\t"                                                                                       \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "add r10, r4, r10, lsl #1\n\t"                                                                 \
    "add r11, r4, r11, lsl #1\n\t" scale("r10", "r12", "r5", "r6", "r7")                           \
        scale("r11", "r12", "r5", "r6", "r7") clamp("r10")                                         \
            clamp("r11") "strb r10, [r2]\n\t"                                                      \
                         "strb r11, [r2, lr]\n\t"                                                  \
                         "add r2, r2, lr, lsl #1\n\t"                                              \
                         "subs r1, #2\n\t"                                                         \
                         "bge 1b\n"                                                                \
                         "2:\n\t"                                                                  \
                         "adds r1, #2\n\t"                                                         \
                         "beq 3f\n\t"                                                              \
                         "ldr r10, [r0]\n\t"                                                       \
                         "add r10, r4, r10, lsl #1\n\t" scale("r10", "r12", "r5", "r6", "r7")      \
                             clamp("r10") "strb r10, [r2]\n"                                       \
                                          "3:\n\t"                                                 \
                                          "pop {r3, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n\t"
#define CLAMP_GENERAL(value) FERRULE_CLAMP_GENERAL(value, "r8", "r9")

__attribute__((naked)) void ferrule_store_sums_plain(const int32_t *sums UNUSED,
                                                     int32_t count UNUSED,
                                                     const int32_t *scale UNUSED,
                                                     int8_t *output UNUSED,
                                                     int32_t step_bytes UNUSED)
{
    __asm__ volatile(ENTRY TWO(FERRULE_SCALE_PLAIN, FERRULE_CLAMP_PLAIN));
}

__attribute__((naked)) void ferrule_store_sums(const int32_t *sums UNUSED, int32_t count UNUSED,
                                               const int32_t *scale UNUSED, int8_t *output UNUSED,
                                               int32_t step_bytes UNUSED, int32_t low UNUSED,
                                               int32_t high UNUSED)
{
    __asm__ volatile(ENTRY "ldrd r8, r9, [sp, #44]\n\t" TWO(FERRULE_SCALE_GENERAL, CLAMP_GENERAL));
}
#else
static inline void store(const int32_t *sums, int32_t count, const int32_t *scale, int8_t *output,
                         int32_t step_bytes, const struct ferrule_output_s8 *limits, bool plain)
{
    const int32_t constants[] = {scale[0], scale[1], scale[2], scale[3]};

    for (int32_t i = 0; i < count; ++i) {
        *output = ferrule_store_plain(sums[i], constants, limits, plain);
        output += step_bytes;
    }
}

void ferrule_store_sums_plain(const int32_t *sums, int32_t count, const int32_t *scale,
                              int8_t *output, int32_t step_bytes)
{
    const struct ferrule_output_s8 limits = {INT8_MIN, INT8_MIN, INT8_MAX};

    store(sums, count, scale, output, step_bytes, &limits, true);
}

void ferrule_store_sums(const int32_t *sums, int32_t count, const int32_t *scale, int8_t *output,
                        int32_t step_bytes, int32_t low, int32_t high)
{
    const struct ferrule_output_s8 limits = {0, low, high}; /* the scales have the zero point */

    store(sums, count, scale, output, step_bytes, &limits, false);
}
#endif
