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
#include "ferrule/kernels/mve_windows.h"

/**
 * Any window. Weights are in the order of the collected elements. Those of all groups follow one
 * another in the stream, whose words are those of a group; listed channels count from the first
 * output of their group.
 */
struct ferrule_conv2d_mve_s8_params {
    struct ferrule_mve_image image;
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
 * Scratch, aligned to 4: as ferrule_mve_collect.
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
