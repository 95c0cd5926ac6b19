/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file All output channels of two pixels whose widened patches stand in scratch.
 */
#ifndef FERRULE_KERNELS_PAIRED_PIXELS_H_INCLUDED
#define FERRULE_KERNELS_PAIRED_PIXELS_H_INCLUDED

#include "ferrule/kernels/paired.h"

/** Sums of two channels of one pixel. */
struct ferrule_pair_sums {
    uint32_t both; /**< 256 * b + a */
    uint32_t a;
};

/** @brief Return the sum of channel b. */
static inline uint32_t ferrule_sum_b(struct ferrule_pair_sums sums)
{
    return (uint32_t)((int32_t)(sums.both - sums.a) >> 8);
}

/**
 * @brief Compute and store all channels of two pixels.
 *
 * `patches` has for each two products the word of the first and that of the second pixel. For a
 * single pixel let `first` and `second` be the same; then only the first patch counts.
 */
static inline void ferrule_store_pixels_s8(const uint32_t *patches, int32_t words,
                                           const int32_t *weights, const int32_t *channels,
                                           int32_t output_c, const struct ferrule_output_s8 *output,
                                           int8_t *first, int8_t *second)
{
    for (int32_t c = 0; c < output_c; c += 2) {
        struct ferrule_pair_sums one = {0, 0};
        struct ferrule_pair_sums two = {0, 0};
        const uint32_t *x = patches;
        const int32_t *end = weights + 2 * words;

        do {
            uint32_t even = (uint32_t)weights[0];
            uint32_t odd = (uint32_t)weights[1];
            uint32_t a = ferrule_even_bytes(even);

            one.both = ferrule_dual_multiply_add(x[0], even, one.both);
            two.both = ferrule_dual_multiply_add(x[1], even, two.both);
            one.a = ferrule_dual_multiply_add(x[0], a, one.a);
            two.a = ferrule_dual_multiply_add(x[1], a, two.a);
            a = ferrule_even_bytes(odd);
            one.both = ferrule_dual_multiply_add(x[2], odd, one.both);
            two.both = ferrule_dual_multiply_add(x[3], odd, two.both);
            one.a = ferrule_dual_multiply_add(x[2], a, one.a);
            two.a = ferrule_dual_multiply_add(x[3], a, two.a);
            x += 4;
            weights += 2;
        } while (weights != end);

        second[c] = ferrule_store_s8(two.a, channels, output);
        first[c] = ferrule_store_s8(one.a, channels, output);
        if (c + 1 < output_c) {
            channels += FERRULE_CHANNEL_WORDS;
            second[c + 1] = ferrule_store_s8(ferrule_sum_b(two), channels, output);
            first[c + 1] = ferrule_store_s8(ferrule_sum_b(one), channels, output);
            channels += FERRULE_CHANNEL_WORDS;
        }
    }
}

#endif
