/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D with vector instructions (MVE). Any context; the kernels keep no state.
 *
 * The windows of some pixels are collected in scratch, then multiplied. Output pixels are written
 * in order, after the windows of all pixels up to them have been read.
 */
#ifndef FERRULE_KERNELS_CONV2D_MVE_H_INCLUDED
#define FERRULE_KERNELS_CONV2D_MVE_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/mve_pixels.h"
#include "ferrule/kernels/window.h"

/**
 * Any window. Weights are in the order columns, rows, input channels; or rows, columns, input
 * channels, if windows are collected by rows.
 */
struct ferrule_conv2d_mve_s8_params {
    struct ferrule_window window;
    int32_t input_zero_point;
    int32_t pixels;  /**< collected at once, in one row of the output */
    int32_t shared;  /**< 1 if neighbouring windows share columns in scratch: dilation_w is 1, and
                        stride_w at most kernel_w; otherwise 0 */
    int32_t by_rows; /**< 1 for dilation_w 1 and rows of a window of at most 16 bytes; otherwise 0
                      */
    struct ferrule_mve_weights weights;
};

/** A window of one pixel, stride 1 and no padding. */
struct ferrule_conv2d_1x1_mve_s8_params {
    int32_t count; /**< pixels of the image */
    int32_t input_c;
    int32_t pixels;        /**< collected at once */
    const uint8_t *inputs; /**< the 16 * vectors input channels that have weights; null means all */
    struct ferrule_mve_weights weights;
};

/**
 * @brief Convolve.
 *
 * Scratch, aligned to 4: kernel_h * input_c bytes per column of `pixels` windows, plus 15. Shared
 * windows have (pixels - 1) * stride_w + kernel_w columns; others have pixels * kernel_w. By rows,
 * it is the sum of both, plus 32.
 */
void ferrule_conv2d_mve_s8(const struct ferrule_conv2d_mve_s8_params *params, const int8_t *input,
                           int8_t *output, void *scratch);

/**
 * @brief Convolve with a window of one pixel.
 *
 * Scratch, aligned to 4: pixels * input_c + 15 bytes, or pixels * 16 * vectors with `inputs`.
 */
void ferrule_conv2d_1x1_mve_s8(const struct ferrule_conv2d_1x1_mve_s8_params *params,
                               const int8_t *input, int8_t *output, void *scratch);

#endif
