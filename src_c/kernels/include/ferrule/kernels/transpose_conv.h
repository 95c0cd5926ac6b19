/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file TRANSPOSE_CONV. Any context; the kernels keep no state between calls.
 *
 * The strides of the window count pixels of the output, and its padding is outside the output. The
 * output may not share memory with the input.
 */
#ifndef FERRULE_KERNELS_TRANSPOSE_CONV_H_INCLUDED
#define FERRULE_KERNELS_TRANSPOSE_CONV_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

#ifdef __cplusplus
extern "C" {
#endif

/** int8. */
struct ferrule_transpose_conv_s8_params {
    struct ferrule_window window;
    int32_t output_c;
    int32_t input_zero_point;
    const int8_t *weights;      /**< OHWI */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    struct ferrule_output_s8 output;
};

/** int16 with int8 weights. */
struct ferrule_transpose_conv_s16_params {
    struct ferrule_window window;
    int32_t output_c;
    const int8_t *weights;
    const int64_t *bias;
    const int32_t *multipliers; /**< one per output channel, of 15 bits */
    const int8_t *shifts;
    int32_t low;
    int32_t high;
};

/** float32. */
struct ferrule_transpose_conv_f32_params {
    struct ferrule_window window;
    int32_t output_c;
    const float *weights;
    const float *bias;
    float low;
    float high;
};

/** @brief Add up the windows of all pixels; no scratch. */
void ferrule_transpose_conv_s8(const struct ferrule_transpose_conv_s8_params *params,
                               const int8_t *input, int8_t *output);
void ferrule_transpose_conv_s16(const struct ferrule_transpose_conv_s16_params *params,
                                const int16_t *input, int16_t *output);
void ferrule_transpose_conv_f32(const struct ferrule_transpose_conv_f32_params *params,
                                const float *input, float *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_transpose_conv_single_s8(const struct ferrule_transpose_conv_s8_params *params,
                                      const int8_t *input, int8_t *output);
void ferrule_transpose_conv_onnx_s8(const struct ferrule_transpose_conv_s8_params *params,
                                    const int8_t *input, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
