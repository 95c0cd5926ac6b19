/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D. Any context; the kernels keep nothing between calls.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_CONV2D_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_CONV2D_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

/** int8 with any window and scales. */
struct ferrule_depthwise_conv2d_s8_params {
    struct ferrule_window window;
    int32_t depth_multiplier; /**< output channels per input channel */
    int32_t input_zero_point;
    const int8_t *weights;      /**< [kernel_h, kernel_w, output channels] */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    struct ferrule_output_s8 output;
};

/** @brief Convolve each channel on its own; no scratch. */
void ferrule_depthwise_conv2d_s8(const struct ferrule_depthwise_conv2d_s8_params *params,
                                 const int8_t *input, int8_t *output);

#endif
