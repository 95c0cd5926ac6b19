/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D with vector instructions (MVE). Any context; the kernels keep no state.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_H_INCLUDED

#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/window.h"

enum { FERRULE_MVE_TAPS = 9 /**< of a window, at most */ };

/** int8 with a window of up to FERRULE_MVE_TAPS pixels; input_c is a multiple of 4. */
struct ferrule_depthwise_conv2d_mve_s8_params {
    struct ferrule_window window;
    int32_t input_zero_point;
    /**
     * Per 16 channels: biases (with the contribution of the input's zero point), in the order 0, 4,
     * 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15; the weights of each tap, 16 bytes;
     * multipliers and shifts as bytes, negative to the right, in the order of the biases. Missing
     * taps have the weight 0. The two weights of taps 2 * i and 2 * i + 1 sum to at most 255 in
     * magnitude.
     */
    const int32_t *stream;
    int32_t general;  /**< 0 if the output is as ferrule_is_plain requires, otherwise 1 */
    int32_t together; /**< neighbouring pixels in 16 lanes: 16 / input_c, if that is a whole number,
                         the stride is 1 and the stream repeats the channels; otherwise 1 */
    struct ferrule_output_s8 output;
};

/** Pixels of a row whose windows are inside the image, or one pixel. */
struct ferrule_mve_depthwise {
    const int8_t *taps[FERRULE_MVE_TAPS]; /**< of the first pixel */
    const int32_t *stream;
    int8_t *output;
    int32_t tap_step; /**< from the taps of a step to the next ones, less the lanes in whole vectors
                       */
    int32_t lanes;    /**< bytes of a step, a multiple of 4 */
    int32_t count;    /**< steps, at least 1 */
    int32_t zero_point;
    int32_t low;
    int32_t high;
    int32_t output_step; /**< lanes, less the lanes in whole vectors */
};

/** @brief Compute pixels; `plain` for outputs as ferrule_is_plain requires. */
void ferrule_mve_depthwise_plain(const struct ferrule_mve_depthwise *run);
void ferrule_mve_depthwise_general(const struct ferrule_mve_depthwise *run);

/**
 * @brief Convolve each channel on its own, pixel by pixel in order.
 *
 * The channels of a window are read before the same channels of its pixel are written. Scratch:
 * input_c bytes.
 */
void ferrule_depthwise_conv2d_mve_s8(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                                     const int8_t *input, int8_t *output, void *scratch);

#endif
