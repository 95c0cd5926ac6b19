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
/* r0: plan, r1 and r2: records of three and two words, r3: weights, r4: shift, r5: stream. */
#define EXPAND_PLACE(count)                                                                        \
    "ldrsh r6, [r0], #2\n\t"                                                                       \
    "lsls r6, #1\n\t"                                                                              \
    "cmp " count ", #1\n\t"                                                                        \
    "it eq\n\t"                                                                                    \
    "orreq r6, r6, #0x80000000\n\t"                                                                \
    "str r6, [r5], #4\n\t"
#define EXPAND_WORD                                                                                \
    "ldrsh r6, [r0], #2\n\t"                                                                       \
    "ldrsh r7, [r0], #2\n\t"                                                                       \
    "ldrsb r6, [r3, r6]\n\t"                                                                       \
    "ldrsb r7, [r3, r7]\n\t"                                                                       \
    "lsls r6, r4\n\t"                                                                              \
    "lsls r7, r4\n\t"                                                                              \
    "pkhbt r6, r6, r7, lsl #16\n\t"                                                                \
    "str r6, [r5], #4\n\t"

__attribute__((naked)) void ferrule_expand_pairs(const int16_t *plan UNUSED, int32_t threes UNUSED,
                                                 int32_t twos UNUSED, const int8_t *weights UNUSED,
                                                 int32_t shift UNUSED, int32_t *stream UNUSED)
{
    __asm__ volatile("push {r4, r5, r6, r7}\n\t"
                     "ldrd r4, r5, [sp, #16]\n\t"
                     "cbz r1, 2f\n"
                     "1:\n\t" EXPAND_PLACE("r1") EXPAND_WORD EXPAND_WORD EXPAND_WORD
                     "subs r1, #1\n\t"
                     "bne 1b\n"
                     "2:\n\t"
                     "cbz r2, 4f\n"
                     "3:\n\t" EXPAND_PLACE("r2") EXPAND_WORD EXPAND_WORD "subs r2, #1\n\t"
                                                                         "bne 3b\n"
                                                                         "4:\n\t"
                                                                         "pop {r4, r5, r6, r7}\n\t"
                                                                         "bx lr\n\t");
}
#else
void ferrule_expand_pairs(const int16_t *plan, int32_t threes, int32_t twos, const int8_t *weights,
                          int32_t shift, int32_t *stream)
{
    for (int32_t left = threes + twos; left > 0; --left) {
        bool last = left == twos + 1 || left == 1;

        *stream++ = (int32_t)((uint32_t)(int32_t)*plan++ * 2u | (last ? 1u << 31 : 0u));
        for (int32_t i = left > twos ? 3 : 2; i > 0; --i) {
            int32_t low = weights[plan[0]];
            int32_t high = weights[plan[1]];

            *stream++ = (int32_t)ferrule_pair((int32_t)((uint32_t)low << shift),
                                              (int32_t)((uint32_t)high << shift));
            plan += 2;
        }
    }
}
#endif

void ferrule_widen_pairs(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group,
                         const struct ferrule_window_lines *lines, uint32_t *target)
{
    source += run->source_bytes;
    target += run->target;
    for (int32_t left = lines->count; left > 0; --left) {
        if (run->has_left) {
            widen_half(source - group->word_bytes + group->step_bytes, target - 1, group, 1);
        }
        if (run->has_right) {
            widen_half(source + run->count * group->word_bytes, target + run->count, group, 0);
        }
        if (run->count > 0) {
            widen_four(source, run->count, target, group);
        }
        source += lines->source_bytes;
        target += lines->target_words;
    }
}
