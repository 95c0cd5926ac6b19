/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D with int16 data, int8 weights and vector instructions (MVE). Any context;
 * the kernels keep no state.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_S16_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_S16_H_INCLUDED

#include "ferrule/kernels/mve_pixels_s16.h"
#include "ferrule/kernels/window.h"

/** Any window and number of channels, with sums of 32 bits. */
struct ferrule_depthwise_conv2d_mve_s16_params {
    struct ferrule_window window;
    int32_t depth_multiplier;
    /**
     * Per 8 channels of the output: with a depth multiplier above 1, the indices of their input
     * channels as halfwords; the biases of the even channels, then of the odd ones; the weights of
     * each tap, 8 bytes; multipliers that include the shift, in the order of the biases. Missing
     * channels have weights of 0.
     */
    const int32_t *stream;
    int32_t low;
    int32_t high;
};

/** Neighbouring pixels of a row that have the same taps inside the image. */
struct ferrule_mve_depthwise_s16 {
    const int16_t *data;   /**< under the first tap of the first pixel */
    const int32_t *stream; /**< as in the parameters */
    int16_t *output;
    int32_t channels; /**< of the output */
    int32_t rows;     /**< taps that are inside the image, 0 or more; columns at least 1 */
    int32_t columns;
    int32_t row_bytes;    /**< from a tap to that of the next row */
    int32_t column_bytes; /**< from a tap to that of the next column */
    int32_t pixel_bytes;  /**< from a pixel to the next one */
    int32_t first_weight; /**< bytes from the biases to the weights of the first tap */
    int32_t skipped;      /**< bytes of weights from the end of a row of taps to the next one */
    int32_t scales;       /**< bytes from the biases to the multipliers */
    int32_t low;
    int32_t high;
    int32_t pixels; /**< at least 1 */
};

/** @brief Compute pixels whose channels are those of the input. */
void ferrule_mve_depthwise_s16(const struct ferrule_mve_depthwise_s16 *run);

/** @brief Compute pixels with the input channels that the stream states. */
void ferrule_mve_depthwise_multiplied_s16(const struct ferrule_mve_depthwise_s16 *run);

#if FERRULE_HAS_MVE
/** @brief Compute the pixels of a pool: as averages, with the reciprocal of the divisor, a fraction
 * of 31 bits, in `skipped`; or as maxima. */
void ferrule_mve_average_s16(const struct ferrule_mve_depthwise_s16 *run);
void ferrule_mve_maximum_s16(const struct ferrule_mve_depthwise_s16 *run);
#endif

/**
 * @brief Convolve each channel on its own, pixel by pixel in order.
 *
 * 8 channels of a window are read before the same channels of its pixel are written.
 */
void ferrule_depthwise_conv2d_mve_s16(const struct ferrule_depthwise_conv2d_mve_s16_params *params,
                                      const int16_t *input, int16_t *output);

#endif
