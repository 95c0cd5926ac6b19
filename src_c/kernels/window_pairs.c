/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_window.h"

#define FERRULE_WIDENED_BYTES 4
#include "ferrule/kernels/widen_pairs.inc.h"

#define FERRULE_KERNEL                    ferrule_multiply_pairs
#define FERRULE_HOP                       1
#define FERRULE_HAS_THUMB2_WINDOW         FERRULE_HAS_DSP
#define FERRULE_HAS_THUMB1_WINDOW         0
#define FERRULE_MULTIPLY_ADD              "smlad"
#define FERRULE_ADDED(data, weights, sum) ferrule_dual_multiply_add((data), (weights), (sum))
#include "ferrule/kernels/multiply_window.inc.h"

#if FERRULE_HAS_DSP
/* r0: plan, r1: count, r2: words, r3: weights, r4: shift, r5: stream. */
#define EXPAND_WORD                                                                                \
    "ldrsh r6, [r0], #2\n\t"                                                                       \
    "ldrsh r7, [r0], #2\n\t"                                                                       \
    "ldrsb r6, [r3, r6]\n\t"                                                                       \
    "ldrsb r7, [r3, r7]\n\t"                                                                       \
    "lsls r6, r4\n\t"                                                                              \
    "lsls r7, r4\n\t"                                                                              \
    "pkhbt r6, r6, r7, lsl #16\n\t"                                                                \
    "str r6, [r5], #4\n\t"

__attribute__((naked)) const int16_t *
ferrule_expand_pairs(const int16_t *plan UNUSED, int32_t count UNUSED, int32_t words UNUSED,
                     const int8_t *weights UNUSED, int32_t shift UNUSED, int32_t *stream UNUSED)
{
    __asm__ volatile("cbz r1, 3f\n\t"
                     "push {r4, r5, r6, r7}\n\t"
                     "ldrd r4, r5, [sp, #16]\n"
                     "1:\n\t"
                     "ldrsh r6, [r0], #2\n\t"
                     "lsls r6, #1\n\t"
                     "cmp r1, #1\n\t"
                     "it eq\n\t"
                     "orreq r6, r6, #0x80000000\n\t"
                     "str r6, [r5], #4\n\t" EXPAND_WORD EXPAND_WORD "cmp r2, #2\n\t"
                     "beq 2f\n\t" EXPAND_WORD "2:\n\t"
                     "subs r1, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4, r5, r6, r7}\n"
                     "3:\n\t"
                     "bx lr\n\t");
}
#else
const int16_t *ferrule_expand_pairs(const int16_t *plan, int32_t count, int32_t words,
                                    const int8_t *weights, int32_t shift, int32_t *stream)
{
    for (; count > 0; --count) {
        *stream++ = (int32_t)((uint32_t)(int32_t)*plan++ * 2u | (count == 1 ? 1u << 31 : 0u));
        for (int32_t i = words; i > 0; --i) {
            int32_t low = weights[plan[0]];
            int32_t high = weights[plan[1]];

            *stream++ = (int32_t)ferrule_pair((int32_t)((uint32_t)low << shift),
                                              (int32_t)((uint32_t)high << shift));
            plan += 2;
        }
    }
    return plan;
}
#endif

void ferrule_widen_pairs(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group, uint32_t *target)
{
    source += run->source_bytes;
    target += run->target;
    if (run->has_left) {
        widen_half(source - group->word_bytes + group->step_bytes, target - 1, group, 1);
    }
    if (run->has_right) {
        widen_half(source + run->count * group->word_bytes, target + run->count, group, 0);
    }
    if (run->count > 0) {
        widen_four(source, run->count, target, group);
    }
}
