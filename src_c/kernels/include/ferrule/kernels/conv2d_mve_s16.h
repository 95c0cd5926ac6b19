/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D and FULLY_CONNECTED with int16 data, int8 weights and vector instructions (MVE).
 * Any context; the kernels keep no state.
 */
#ifndef FERRULE_KERNELS_CONV2D_MVE_S16_H_INCLUDED
#define FERRULE_KERNELS_CONV2D_MVE_S16_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/mve_pixels_s16.h"
#include "ferrule/kernels/mve_windows.h"

/** Any window. Weights are in the order of the collected elements. */
struct ferrule_conv2d_mve_s16_params {
    struct ferrule_mve_image image;
    struct ferrule_mve_weights_s16 weights;
};

/** Rows of elements, which are all multiplied by the same weights. */
struct ferrule_fully_connected_mve_s16_params {
    int32_t rows;
    struct ferrule_mve_weights_s16 weights; /**< with wide sums */
};

/**
 * @brief Convolve.
 *
 * Output pixels are written in order, after the windows of all pixels up to them have been read.
 * Scratch, aligned to 4: as ferrule_mve_collect.
 */
void ferrule_conv2d_mve_s16(const struct ferrule_conv2d_mve_s16_params *params,
                            const int16_t *input, int16_t *output, void *scratch);

/** @brief Multiply each row by all weights. */
void ferrule_fully_connected_mve_s16(const struct ferrule_fully_connected_mve_s16_params *params,
                                     const int16_t *input, int16_t *output);

#endif
