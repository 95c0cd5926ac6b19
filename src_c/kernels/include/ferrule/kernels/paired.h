/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Weights of two output channels in one 16-bit number.
 *
 * A weight pair is h = 256 * b + a with a in -128 to 127. For any data x, sum(x * h) - sum(x * a)
 * is 256 * sum(x * b) modulo 2^32, which gives sum(x * b) exactly while it is below 2^23. So one
 * multiplication of two pairs of 16-bit numbers serves two channels, and weights take one byte
 * each.
 *
 * Data is widened to 16 bits. Of each four bytes, 0 and 2 stand in one word, 1 and 3 in the next,
 * as the DSP extension unpacks them; weights are packed in that order.
 */
#ifndef FERRULE_KERNELS_PAIRED_H_INCLUDED
#define FERRULE_KERNELS_PAIRED_H_INCLUDED

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/requantize.h"

/**
 * How the accumulators of a channel become stored values: bias with what the input's zero point
 * contributes, multiplier of 31 bits, and shifts (bits 0-7: to the right, bits 8-15: to the left,
 * plus 1, bits 16-31: -1 if there is one to the right). Channels follow each other.
 */
enum { FERRULE_CHANNEL_WORDS = 3 };

/** What the channels of an output have in common. */
struct ferrule_output_s8 {
    int32_t zero_point;
    int32_t low;
    int32_t high;
};

/**
 * @brief Return the stored value of a sum of products of one channel.
 *
 * Sum plus bias, times 2^left, has a magnitude below 2^30. Same result as ferrule_requantize.
 */
static inline int8_t ferrule_store_s8(uint32_t sum, const int32_t *channel,
                                      const struct ferrule_output_s8 *output)
{
    int32_t shifts = channel[2];
    int32_t right = shifts & 0xff;
    int32_t value = (int32_t)((sum + (uint32_t)channel[0]) << ((shifts >> 8) & 0xff));
    int64_t product = (int64_t)value * channel[1];
    int32_t high = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);

    high += (high >> 31) & (shifts >> 16); /* halves go away from zero */
    high = (high + (int32_t)((UINT32_C(1) << right) >> 1)) >> right;
    high = ferrule_add_wrap(high, output->zero_point);
    return (int8_t)ferrule_clamp(high, output->low, output->high);
}

/** @brief Widen `words` times four bytes; word i goes to target[i * step], target[i * step + step /
 * 2]. */
static inline void ferrule_widen(const int8_t *source, int32_t words, uint32_t *target,
                                 int32_t step)
{
    for (int32_t i = 0; i < words; ++i) {
        uint32_t word = ferrule_load_word(source);
        target[0] = ferrule_even_bytes(word);
        target[step / 2] = ferrule_odd_bytes(word);
        source += 4;
        target += step;
    }
}

#endif
