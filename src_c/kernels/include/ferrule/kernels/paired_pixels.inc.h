/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Computation of all channels of two pixels, stored with the macro FERRULE_STORE.
 */
#include "ferrule/kernels/paired_pixels.h"

/**
 * @brief Compute and store all channels of two pixels.
 *
 * For every two products, `patches` has the word of the first pixel and that of the second. For a
 * single pixel, pass the same pointer as `first` and `second`; only the first patch is then used.
 */
static inline void ferrule_store_pixels_s8(const struct ferrule_paired_weights *paired,
                                           const uint32_t *patches, int8_t *first, int8_t *second,
                                           bool plain)
{
    const struct ferrule_output_s8 output = paired->output;
    const int32_t *weights = paired->weights;
    const int32_t *channel = paired->channels;
    const int16_t *position = paired->positions;
    int32_t words = paired->words;
    int32_t odd = 2 * output.zero_point + 1;

    if (paired->fixed != NULL) {
        (void)memcpy(first, paired->fixed, (size_t)paired->output_c);
        (void)memcpy(second, paired->fixed, (size_t)paired->output_c);
    }
    for (int32_t left = paired->live_c; left > 0; left -= 2) {
        struct ferrule_four_sums sums = ferrule_multiply_patches(patches, weights, words);
        struct ferrule_scale a = ferrule_scale_of(channel, odd);
        int8_t a_second = FERRULE_STORE(2u * sums.second.a, &a, &output, plain);
        int8_t a_first = FERRULE_STORE(2u * sums.first.a, &a, &output, plain);

        int32_t place = position[0];

        second[place] = a_second;
        first[place] = a_first;
        if (left > 1) {
            struct ferrule_scale b = ferrule_scale_of(channel + FERRULE_CHANNEL_WORDS, odd);
            uint32_t b_second = ferrule_twice_b(sums.second.both, sums.second.a);
            uint32_t b_first = ferrule_twice_b(sums.first.both, sums.first.a);

            place = position[1];
            second[place] = FERRULE_STORE(b_second, &b, &output, plain);
            first[place] = FERRULE_STORE(b_first, &b, &output, plain);
        }
        weights += 2 * words;
        position += 2;
        channel += 2 * FERRULE_CHANNEL_WORDS;
    }
}
