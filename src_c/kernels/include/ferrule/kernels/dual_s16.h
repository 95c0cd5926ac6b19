/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D with int16 data, two channels of two pixels at a time. Any context; the kernel
 * keeps no state between calls.
 */
#ifndef FERRULE_KERNELS_DUAL_S16_H_INCLUDED
#define FERRULE_KERNELS_DUAL_S16_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

/** @brief Return the stored value for a sum, clamped to int16; `floor` is all ones if it is not to
 * be negative. See ferrule_scale_sum for `twice`. */
static inline int16_t ferrule_store_s16(uint32_t sum, const struct ferrule_scale *scale, bool twice,
                                        int32_t floor)
{
    int32_t value = ferrule_saturate_s16(ferrule_scale_sum(2u * sum, scale, twice));

    return (int16_t)(value & (value < 0 ? ~floor : -1));
}

/** @brief Clamp stored values to limits that ferrule_store_s16 does not know; the others cost
 * nothing. */
static inline void ferrule_clamp_s16(int16_t *elements, int32_t count, int32_t low, int32_t high)
{
    if ((low == INT16_MIN || low == 0) && high == INT16_MAX) {
        return;
    }
    for (int32_t i = 0; i < count; ++i) {
        elements[i] = (int16_t)ferrule_clamp(elements[i], low, high);
    }
}

/** int16 with int8 weights, and sums that fit into 30 bits. */
struct ferrule_conv2d_dual_s16_params {
    struct ferrule_window window;
    int32_t output_c;
    int32_t words;          /**< products per output / 4, rounded up to a multiple of 2 */
    const int32_t *weights; /**< four weights of a channel, then of the next; products 0, 2, 1, 3 */
    const int32_t *channels; /**< FERRULE_CHANNEL_WORDS per channel, rounded up to two */
    bool twice; /**< whether results are rounded twice, as with an int32 bias; their right shift is
                   1 or more. Otherwise the shift is 0. */
    int32_t low;
    int32_t high;
};

/** int16 with int8 weights and an int64 bias, for an even number of channels and sums that fit into
 * 30 bits. */
struct ferrule_depthwise_conv2d_dual_s16_params {
    struct ferrule_window window; /**< kernel_w is 3 */
    const int32_t *weights;  /**< two words per two channels and row of the window: of each channel
                                the first and the second pixel, by turns; then the third */
    const int32_t *channels; /**< FERRULE_CHANNEL_WORDS per channel, with a right shift of 0 */
    int32_t low;
    int32_t high;
};

/**
 * @brief Convolve each channel with its own window, two neighbouring pixels of a row at a time
 * where both windows are inside the image.
 *
 * Two channels of both pixels are written before the next two are read.
 */
void ferrule_depthwise_conv2d_dual_s16(
    const struct ferrule_depthwise_conv2d_dual_s16_params *params, const int16_t *input,
    int16_t *output);

/**
 * @brief Convolve.
 *
 * The windows of two consecutive pixels are read before the pixels are written. Scratch: 16 * words
 * bytes, aligned to 4.
 */
void ferrule_conv2d_dual_s16(const struct ferrule_conv2d_dual_s16_params *params,
                             const int16_t *input, int16_t *output, void *scratch);

#endif
