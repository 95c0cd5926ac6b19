/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_window.h"

#define FERRULE_KERNEL                    ferrule_multiply_words
#define FERRULE_HOP                       1
#define FERRULE_HAS_THUMB2_WINDOW         FERRULE_HAS_THUMB2
#define FERRULE_HAS_THUMB1_WINDOW         FERRULE_HAS_THUMB1
#define FERRULE_MULTIPLY_ADD              "mla"
#define FERRULE_ADDED(data, weights, sum) ((sum) + (data) * (weights))
#include "ferrule/kernels/multiply_window.inc.h"

void ferrule_expand_words(const int16_t *plan, int32_t threes, int32_t twos, const int8_t *weights,
                          int32_t shift, int32_t *stream)
{
    for (int32_t left = threes + twos; left > 0; --left) {
        bool last = left == twos + 1 || left == 1;

        *stream++ = (int32_t)((uint32_t)(int32_t)*plan++ * 2u | (last ? 1u << 31 : 0u));
        for (int32_t i = left > twos ? 3 : 2; i > 0; --i) {
            *stream++ = (int32_t)((uint32_t)(int32_t)weights[*plan++] << shift);
        }
    }
}

void ferrule_widen_words(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group,
                         const struct ferrule_window_lines *lines, uint32_t *target)
{
    const int32_t word_bytes = group->word_bytes;

    source += run->source_bytes;
    target += run->target;
    for (int32_t left = lines->count; left > 0; --left) {
        const int8_t *from = source;
        uint32_t *to = target;
        int32_t count = run->count;

        for (; count >= 4; count -= 4) {
            const int8_t *third = from + 2 * word_bytes;

            to[0] = (uint32_t)(int32_t)from[0];
            to[1] = (uint32_t)(int32_t)from[word_bytes];
            to[2] = (uint32_t)(int32_t)third[0];
            to[3] = (uint32_t)(int32_t)third[word_bytes];
            from = third + 2 * word_bytes;
            to += 4;
        }
        for (; count > 0; --count) {
            *to++ = (uint32_t)(int32_t)*from;
            from += word_bytes;
        }
        source += lines->source_bytes;
        target += lines->target_words;
    }
}
