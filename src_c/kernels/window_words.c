/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_window.h"

#define FERRULE_KERNEL                    ferrule_multiply_words
#define FERRULE_HOP                       1
#define FERRULE_HAS_THUMB2_WINDOW         FERRULE_HAS_THUMB2
#define FERRULE_HAS_THUMB1_WINDOW         FERRULE_HAS_THUMB1
#define FERRULE_MULTIPLY_ADD              "mla"
#define FERRULE_ADDED(data, weights, sum) ((sum) + (data) * (weights))
#include "ferrule/kernels/multiply_window.inc.h"

const int16_t *ferrule_expand_words(const int16_t *plan, int32_t count, int32_t words,
                                    const int8_t *weights, int32_t shift, int32_t *stream)
{
    for (; count > 0; --count) {
        *stream++ = (int32_t)((uint32_t)(int32_t)*plan++ * 2u | (count == 1 ? 1u << 31 : 0u));
        for (int32_t i = words; i > 0; --i) {
            *stream++ = (int32_t)((uint32_t)(int32_t)weights[*plan++] << shift);
        }
    }
    return plan;
}

void ferrule_widen_words(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group, uint32_t *target)
{
    const int32_t word_bytes = group->word_bytes;
    int32_t count = run->count;

    source += run->source_bytes;
    target += run->target;
    for (; count >= 4; count -= 4) {
        const int8_t *third = source + 2 * word_bytes;

        target[0] = (uint32_t)(int32_t)source[0];
        target[1] = (uint32_t)(int32_t)source[word_bytes];
        target[2] = (uint32_t)(int32_t)third[0];
        target[3] = (uint32_t)(int32_t)third[word_bytes];
        source = third + 2 * word_bytes;
        target += 4;
    }
    for (; count > 0; --count) {
        *target++ = (uint32_t)(int32_t)*source;
        source += word_bytes;
    }
}
