/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Weights of two output channels in one 16-bit number.
 *
 * A weight pair is h = 256 * b + a with a in -128 to 127. For any data x, sum(x * h) - sum(x * a)
 * is 256 * sum(x * b) modulo 2^32, which gives sum(x * b) exactly while it is below 2^23. One
 * multiplication of two pairs of 16-bit numbers thus serves two channels, and each weight takes one
 * byte.
 *
 * Data is widened to 16 bits. Of each four bytes, 0 and 2 form one word, 1 and 3 the next, as the
 * DSP extension unpacks them; weights are packed in that order.
 */
#ifndef FERRULE_KERNELS_PAIRED_H_INCLUDED
#define FERRULE_KERNELS_PAIRED_H_INCLUDED

#include <stdbool.h>

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/requantize_once.h"

/**
 * Constants that convert the sums of a channel to stored values: twice the bias (including the
 * contribution of the input's zero point), 31-bit multiplier, right shift. Channels are
 * consecutive.
 */
enum { FERRULE_CHANNEL_WORDS = 3 };

/** Parameters shared by all channels of an output. */
struct ferrule_output_s8 {
    int32_t zero_point;
    int32_t low;
    int32_t high;
};

/** The constants of one channel and its output, as ferrule_store_s8 expects them. */
struct ferrule_scale {
    uint32_t bias2;
    int32_t multiplier;
    int32_t right;
    int32_t rounding; /**< including the zero point */
};

/** @brief Return the constants of a channel; `odd` is 2 * zero point + 1. */
static inline struct ferrule_scale ferrule_scale_of(const int32_t *channel, int32_t odd)
{
    struct ferrule_scale scale = {(uint32_t)channel[0], channel[1], channel[2],
                                  (int32_t)((uint32_t)odd << channel[2]) >> 1};
    return scale;
}

/**
 * @brief Return the stored value for twice a sum plus bias, before the clamp.
 *
 * The result of ferrule_requantize plus the zero point if twice the sum, and the product plus
 * rounding, fit in 32 bits. Without `exact_below`, halves below the zero point are rounded up,
 * which does not affect outputs that are clamped there; with it, the right shift is at least 1.
 */
static inline int32_t ferrule_scale_sum(uint32_t sum2, const struct ferrule_scale *scale,
                                        bool exact_below)
{
    int32_t high = ferrule_high_product((int32_t)(sum2 + scale->bias2), scale->multiplier);

    if (exact_below) {
        high -= high < 0 ? 1 : 0;
    }
    return (high + scale->rounding) >> scale->right;
}

/** @brief Return the stored value; `plain` means a clamp to int8 only, with the zero point at -128.
 */
static inline int8_t ferrule_store_s8(uint32_t sum2, const struct ferrule_scale *scale,
                                      const struct ferrule_output_s8 *output, bool plain)
{
    int32_t value = ferrule_scale_sum(sum2, scale, !plain);

    return (int8_t)(plain ? ferrule_saturate_s8(value)
                          : ferrule_clamp(value, output->low, output->high));
}

/** @brief Return whether ferrule_store_s8 may be called with `plain` for an output. */
static inline bool ferrule_is_plain(const struct ferrule_output_s8 *output)
{
    return output->zero_point == INT8_MIN && output->low == INT8_MIN && output->high == INT8_MAX;
}

/**
 * @brief Return the stored value for twice a sum plus bias by the rule SINGLE, before the clamp.
 *
 * The right shift is at least 1.
 */
static inline int32_t ferrule_scale_sum_single(uint32_t sum2, const struct ferrule_scale *scale)
{
    const int32_t twice = (int32_t)(sum2 + scale->bias2);

    return (ferrule_high_product_floor(twice, scale->multiplier) + scale->rounding) >> scale->right;
}

/** @brief Return the same by the rule ONNX. */
static inline int32_t ferrule_scale_sum_onnx(uint32_t sum2, const struct ferrule_scale *scale)
{
    const int32_t twice = (int32_t)(sum2 + scale->bias2);
    const int32_t sum = ferrule_high_product_floor(twice, scale->multiplier) + scale->rounding +
                        ferrule_onnx_margin(scale->right);

    if (ferrule_onnx_is_near_half(sum, scale->right)) {
        const int32_t zero_point = scale->rounding >> scale->right;

        return ferrule_requantize_onnx_any(twice >> 1, scale->multiplier, -scale->right) +
               zero_point;
    }
    return sum >> scale->right;
}

/** @brief Return whether an output is clamped to int8 only: `plain` for the functions below. */
static inline bool ferrule_is_whole_s8(const struct ferrule_output_s8 *output)
{
    return output->low == INT8_MIN && output->high == INT8_MAX;
}

/** @brief Return the stored value by the rule SINGLE or ONNX. */
static inline int8_t ferrule_store_single_s8(uint32_t sum2, const struct ferrule_scale *scale,
                                             const struct ferrule_output_s8 *output, bool plain)
{
    const int32_t value = ferrule_scale_sum_single(sum2, scale);

    return (int8_t)(plain ? ferrule_saturate_s8(value)
                          : ferrule_clamp(value, output->low, output->high));
}
static inline int8_t ferrule_store_onnx_s8(uint32_t sum2, const struct ferrule_scale *scale,
                                           const struct ferrule_output_s8 *output, bool plain)
{
    const int32_t value = ferrule_scale_sum_onnx(sum2, scale);

    return (int8_t)(plain ? ferrule_saturate_s8(value)
                          : ferrule_clamp(value, output->low, output->high));
}

/** Sums of two channels over the same data. */
struct ferrule_pair_sums {
    uint32_t both; /**< 256 * b + a */
    uint32_t a;
};

/** @brief Add the products of two data values with the weights of two channels, in plain C. */
static inline void ferrule_add_pair(struct ferrule_pair_sums *sums, uint32_t data, uint32_t weights)
{
    int32_t low = (int16_t)data;
    int32_t high = (int32_t)data >> 16;

    sums->both += (uint32_t)(low * (int16_t)weights);
    sums->a += (uint32_t)(low * (int8_t)weights);
    sums->both += (uint32_t)(high * ((int32_t)weights >> 16));
    sums->a += (uint32_t)(high * (int8_t)(weights >> 16));
}

/** @brief Return twice the sum of channel b. */
static inline uint32_t ferrule_twice_b(uint32_t both, uint32_t a)
{
    return (uint32_t)((int32_t)(both - a) >> 7);
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
