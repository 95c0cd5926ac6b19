/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D with groups of channels. Any context; the kernels keep no state between calls.
 *
 * Each group of group_output_c output channels is computed from its own group_input_c channels of
 * the image.
 */
#ifndef FERRULE_KERNELS_CONV2D_GROUPED_H_INCLUDED
#define FERRULE_KERNELS_CONV2D_GROUPED_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

#ifdef __cplusplus
extern "C" {
#endif

/** int8. */
struct ferrule_conv2d_grouped_s8_params {
    struct ferrule_window window;
    int32_t output_c; /**< of all groups */
    int32_t group_input_c;
    int32_t group_output_c;
    int32_t input_zero_point;
    const int8_t *weights;      /**< OHWI, with the channels of a group */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    struct ferrule_output_s8 output;
};

/** int16 with int8 weights. */
struct ferrule_conv2d_grouped_s16_params {
    struct ferrule_window window;
    int32_t output_c;
    int32_t group_input_c;
    int32_t group_output_c;
    const int8_t *weights;
    const int64_t *bias;
    const int32_t *multipliers; /**< one per output channel, of 15 bits */
    const int8_t *shifts;
    int32_t low;
    int32_t high;
};

/** int16 with int8 weights, an int32 bias and accumulators of 32 bits. */
struct ferrule_conv2d_grouped_narrow_s16_params {
    struct ferrule_window window;
    int32_t output_c;
    int32_t group_input_c;
    int32_t group_output_c;
    const int8_t *weights;
    const int32_t *bias;
    const int32_t *multipliers;
    const int8_t *shifts;
    int32_t low;
    int32_t high;
};

/** @brief As the kernels without groups; no scratch. */
void ferrule_conv2d_grouped_s8(const struct ferrule_conv2d_grouped_s8_params *params,
                               const int8_t *input, int8_t *output);
void ferrule_conv2d_grouped_s16(const struct ferrule_conv2d_grouped_s16_params *params,
                                const int16_t *input, int16_t *output);
void ferrule_conv2d_grouped_narrow_s16(
    const struct ferrule_conv2d_grouped_narrow_s16_params *params, const int16_t *input,
    int16_t *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_conv2d_grouped_single_s8(const struct ferrule_conv2d_grouped_s8_params *params,
                                      const int8_t *input, int8_t *output);
void ferrule_conv2d_grouped_onnx_s8(const struct ferrule_conv2d_grouped_s8_params *params,
                                    const int8_t *input, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
