/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/store_sums.h"

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
#if FERRULE_HAS_DSP
#define SCALE_PLAIN(sum, low, multiplier, right, rounding)                                         \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "add " sum ", " sum ", " rounding "\n\t"                                                       \
    "asr " sum ", " sum ", " right "\n\t"
#define SCALE_GENERAL(sum, low, multiplier, right, rounding)                                       \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "add " sum ", " sum ", " sum ", asr #31\n\t"                                                   \
    "add " sum ", " sum ", " rounding "\n\t"                                                       \
    "asr " sum ", " sum ", " right "\n\t"
#else
#define SCALE_PLAIN   FERRULE_SCALE_PLAIN
#define SCALE_GENERAL FERRULE_SCALE_GENERAL
#endif

__attribute__((naked)) void
ferrule_store_sums_plain(const int32_t *sums UNUSED, int32_t count UNUSED,
                         const int32_t *scale UNUSED, int8_t *output UNUSED,
                         int32_t step_bytes UNUSED, const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY TWO(SCALE_PLAIN, FERRULE_CLAMP_PLAIN));
}

__attribute__((naked)) void
ferrule_store_sums_whole(const int32_t *sums UNUSED, int32_t count UNUSED,
                         const int32_t *scale UNUSED, int8_t *output UNUSED,
                         int32_t step_bytes UNUSED, const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY TWO(SCALE_GENERAL, FERRULE_CLAMP_PLAIN));
}

__attribute__((naked)) void ferrule_store_sums(const int32_t *sums UNUSED, int32_t count UNUSED,
                                               const int32_t *scale UNUSED, int8_t *output UNUSED,
                                               int32_t step_bytes UNUSED,
                                               const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY "ldr r8, [sp, #44]\n\t"
                           "ldrd r8, r9, [r8, #4]\n\t" TWO(SCALE_GENERAL, CLAMP_GENERAL));
}
#elif FERRULE_HAS_THUMB1
/* r0: sums, r1 to r3 and r6: free, r4 and r5: the multiplier's halves, r7: right shift, r8: twice
 * the bias, r9: rounding, r10: the end of the sums, r11: half of 2^16, r12: the output, lr: bytes
 * between outputs. The fifth and the sixth argument are above the nine saved registers. */
#define ENTRY                                                                                      \
    ".syntax unified\n\t"                                                                          \
    "push {r4, r5, r6, r7, lr}\n\t"                                                                \
    "mov r4, r8\n\t"                                                                               \
    "mov r5, r9\n\t"                                                                               \
    "mov r6, r10\n\t"                                                                              \
    "mov r7, r11\n\t"                                                                              \
    "push {r4, r5, r6, r7}\n\t"                                                                    \
    "lsls r1, r1, #2\n\t"                                                                          \
    "adds r1, r1, r0\n\t"                                                                          \
    "mov r10, r1\n\t"                                                                              \
    "mov r12, r3\n\t"                                                                              \
    "ldr r1, [sp, #36]\n\t"                                                                        \
    "mov lr, r1\n\t"                                                                               \
    "ldmia r2!, {r4, r5, r6, r7}\n\t"                                                              \
    "mov r8, r4\n\t"                                                                               \
    "mov r9, r7\n\t"                                                                               \
    "movs r7, r6\n\t"                                                                              \
    "uxth r4, r5\n\t"                                                                              \
    "asrs r5, r5, #16\n\t"                                                                         \
    "movs r1, #128\n\t"                                                                            \
    "lsls r1, r1, #8\n\t"                                                                          \
    "mov r11, r1\n\t"                                                                              \
    "ldr r1, [sp, #40]\n\t"                                                                        \
    "ldr r2, [r1, #4]\n\t"                                                                         \
    "ldr r3, [r1, #8]\n\t"                                                                         \
    "push {r2, r3}\n"
/* The upper half of a product of 64 bits from four of 32 bits: the middle ones and the carry of the
 * lowest one add up to less than 2^32, without the upper half of the one that may be negative. */
#define EACH(away_from_zero, clamp)                                                                \
    "1:\n\t"                                                                                       \
    "ldmia r0!, {r2}\n\t"                                                                          \
    "lsls r2, r2, #1\n\t"                                                                          \
    "add r2, r8\n\t"                                                                               \
    "asrs r1, r2, #16\n\t"                                                                         \
    "uxth r2, r2\n\t"                                                                              \
    "mov r3, r4\n\t"                                                                               \
    "muls r3, r1\n\t"                                                                              \
    "muls r1, r5\n\t"                                                                              \
    "mov r6, r5\n\t"                                                                               \
    "muls r6, r2\n\t"                                                                              \
    "muls r2, r4\n\t"                                                                              \
    "lsrs r2, r2, #16\n\t"                                                                         \
    "adds r2, r2, r6\n\t"                                                                          \
    "asrs r6, r3, #16\n\t"                                                                         \
    "adds r1, r1, r6\n\t"                                                                          \
    "uxth r3, r3\n\t"                                                                              \
    "adds r2, r2, r3\n\t"                                                                          \
    "add r2, r11\n\t"                                                                              \
    "lsrs r2, r2, #16\n\t"                                                                         \
    "adds r1, r1, r2\n\t" away_from_zero "add r1, r9\n\t"                                          \
    "asrs r1, r7\n\t" clamp "mov r2, r12\n\t"                                                      \
    "strb r1, [r2]\n\t"                                                                            \
    "add r12, lr\n\t"                                                                              \
    "cmp r0, r10\n\t"                                                                              \
    "bne 1b\n\t"                                                                                   \
    "pop {r2, r3}\n\t"                                                                             \
    "pop {r4, r5, r6, r7}\n\t"                                                                     \
    "mov r8, r4\n\t"                                                                               \
    "mov r9, r5\n\t"                                                                               \
    "mov r10, r6\n\t"                                                                              \
    "mov r11, r7\n\t"                                                                              \
    "pop {r4, r5, r6, r7, pc}\n\t"
#define AWAY_FROM_ZERO                                                                             \
    "asrs r2, r1, #31\n\t"                                                                         \
    "adds r1, r1, r2\n\t"
#define TO_INT8                                                                                    \
    "sxtb r2, r1\n\t"                                                                              \
    "cmp r2, r1\n\t"                                                                               \
    "beq 2f\n\t"                                                                                   \
    "asrs r1, r1, #31\n\t"                                                                         \
    "movs r2, #127\n\t"                                                                            \
    "eors r1, r2\n"                                                                                \
    "2:\n\t"
#define TO_LIMITS                                                                                  \
    "ldr r2, [sp]\n\t"                                                                             \
    "cmp r1, r2\n\t"                                                                               \
    "bge 2f\n\t"                                                                                   \
    "mov r1, r2\n"                                                                                 \
    "2:\n\t"                                                                                       \
    "ldr r2, [sp, #4]\n\t"                                                                         \
    "cmp r1, r2\n\t"                                                                               \
    "ble 3f\n\t"                                                                                   \
    "mov r1, r2\n"                                                                                 \
    "3:\n\t"

__attribute__((naked)) void
ferrule_store_sums_plain(const int32_t *sums UNUSED, int32_t count UNUSED,
                         const int32_t *scale UNUSED, int8_t *output UNUSED,
                         int32_t step_bytes UNUSED, const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY EACH("", TO_INT8));
}

__attribute__((naked)) void
ferrule_store_sums_whole(const int32_t *sums UNUSED, int32_t count UNUSED,
                         const int32_t *scale UNUSED, int8_t *output UNUSED,
                         int32_t step_bytes UNUSED, const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY EACH(AWAY_FROM_ZERO, TO_INT8));
}

__attribute__((naked)) void ferrule_store_sums(const int32_t *sums UNUSED, int32_t count UNUSED,
                                               const int32_t *scale UNUSED, int8_t *output UNUSED,
                                               int32_t step_bytes UNUSED,
                                               const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile(ENTRY EACH(AWAY_FROM_ZERO, TO_LIMITS));
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
                              int8_t *output, int32_t step_bytes,
                              const struct ferrule_output_s8 *limits)
{
    store(sums, count, scale, output, step_bytes, limits, true);
}

void ferrule_store_sums_whole(const int32_t *sums, int32_t count, const int32_t *scale,
                              int8_t *output, int32_t step_bytes,
                              const struct ferrule_output_s8 *limits)
{
    store(sums, count, scale, output, step_bytes, limits, false);
}

void ferrule_store_sums(const int32_t *sums, int32_t count, const int32_t *scale, int8_t *output,
                        int32_t step_bytes, const struct ferrule_output_s8 *limits)
{
    store(sums, count, scale, output, step_bytes, limits, false);
}
#endif
