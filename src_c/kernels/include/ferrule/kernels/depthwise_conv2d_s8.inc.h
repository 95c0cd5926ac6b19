/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D of int8, for each rule of rounding. A kernel's source file
 * defines these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/depthwise_conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

static int8_t *store_pixel(const struct ferrule_depthwise_conv2d_s8_params *params,
                           const int8_t *image, int32_t y, int32_t x, int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t output_c = window->input_c * params->depth_multiplier;

    for (int32_t c = 0; c < window->input_c; ++c) {
        for (int32_t m = 0; m < params->depth_multiplier; ++m) {
            int32_t channel = c * params->depth_multiplier + m;
            int32_t sum = params->bias[channel];

            for (int32_t i = rows.first; i < rows.end; ++i) {
                int32_t row = (y + i * window->dilation_h) * window->input_w;

                for (int32_t j = columns.first; j < columns.end; ++j) {
                    int32_t pixel = (row + x + j * window->dilation_w) * window->input_c + c;
                    int32_t weight = (i * window->kernel_w + j) * output_c + channel;

                    sum += (image[pixel] - params->input_zero_point) * params->weights[weight];
                }
            }

            int32_t value =
                FERRULE_REQUANTIZE(sum, params->multipliers[channel], params->shifts[channel]);
            value = ferrule_add_wrap(value, params->output.zero_point);
            *output++ = (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
        }
    }
    return output;
}

void FERRULE_KERNEL(const struct ferrule_depthwise_conv2d_s8_params *params, const int8_t *input,
                    int8_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                output = store_pixel(params, input, i * window->stride_h - window->pad_top,
                                     j * window->stride_w - window->pad_left, output);
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
