/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_CONV2D_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_CONV2D_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/float_pixels.h"
#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

/** int8 with any window, weights and scales. */
struct ferrule_depthwise_conv2d_s8_params {
    struct ferrule_window window;
    int32_t depth_multiplier; /**< output channels per input channel */
    int32_t input_zero_point;
    int32_t weight_zero_point;
    const int8_t *weights;      /**< [kernel_h, kernel_w, output channels] */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    struct ferrule_output_s8 output;
};

/** int8 with any window, for cores with the DSP extension: pairs of taps, four channels at a time.
 */
struct ferrule_depthwise_conv2d_taps_s8_params {
    struct ferrule_window window;
    int32_t input_zero_point;
    const int32_t *weights; /**< per four channels two words per two taps a and b: bytes a0, a1, b0,
                               b1, then those of channels 2 and 3; if proved, a bias per channel,
                               for each two taps a word per channel, whose halves are those times
                               256 (or 128), and a multiplier per channel */
    const int32_t *scales;  /**< FERRULE_CHANNEL_WORDS per channel; none if proved */
    struct ferrule_output_s8 output;
};

/** int16 with int8 weights. */
struct ferrule_depthwise_conv2d_s16_params {
    struct ferrule_window window;
    int32_t depth_multiplier;   /**< output channels per input channel */
    const int8_t *weights;      /**< [kernel_h, kernel_w, output channels] */
    const int64_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel, of 15 bits */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    int32_t low;
    int32_t high;
};

/** float32. */
struct ferrule_depthwise_conv2d_f32_params {
    struct ferrule_window window;
    int32_t output_c;
    int32_t depth_multiplier; /**< output channels per input channel */
    int32_t block;            /**< 8 channels, for depth_multiplier 1, or all */
    void (*store)(struct ferrule_float_pixels *pixels); /**< ferrule_float_channels_8, or
                                                           ferrule_float_channels for all */
    const float *weights; /**< the blocks of `ferrule/kernels/float_pixels.h` or, in one block,
                             [kernel_h, kernel_w, output channels] */
    const float *bias;    /**< one per output channel, for one block; otherwise null */
    float low;
    float high;
};

/** @brief Convolve each channel on its own; no scratch. */
void ferrule_depthwise_conv2d_s16(const struct ferrule_depthwise_conv2d_s16_params *params,
                                  const int16_t *input, int16_t *output);
void ferrule_depthwise_conv2d_f32(const struct ferrule_depthwise_conv2d_f32_params *params,
                                  const float *input, float *output);
void ferrule_depthwise_conv2d_s8(const struct ferrule_depthwise_conv2d_s8_params *params,
                                 const int8_t *input, int8_t *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_depthwise_conv2d_single_s8(const struct ferrule_depthwise_conv2d_s8_params *params,
                                        const int8_t *input, int8_t *output);
void ferrule_depthwise_conv2d_onnx_s8(const struct ferrule_depthwise_conv2d_s8_params *params,
                                      const int8_t *input, int8_t *output);

/** @brief Convolve each channel on its own; scratch: a pointer per tap, of which the number is
 * rounded up to two, then a byte per channel, aligned as a pointer. */
void ferrule_depthwise_conv2d_taps_s8(const struct ferrule_depthwise_conv2d_taps_s8_params *params,
                                      const int8_t *input, int8_t *output, void *scratch);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_depthwise_conv2d_taps_single_s8(
    const struct ferrule_depthwise_conv2d_taps_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);
void ferrule_depthwise_conv2d_taps_onnx_s8(
    const struct ferrule_depthwise_conv2d_taps_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

/** @brief The same for outputs with ferrule_is_whole_s8() and constants in the proved form of
 * `ferrule/kernels/requantize_dsp.h`, by any rule. */
void ferrule_depthwise_conv2d_taps_proved_s8(
    const struct ferrule_depthwise_conv2d_taps_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

#endif
