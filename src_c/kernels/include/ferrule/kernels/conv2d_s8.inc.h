/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D of int8, for each rule of rounding. A kernel's source file defines
 * these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

static int32_t sum_window(const struct ferrule_conv2d_s8_params *params, const int8_t *image,
                          const int8_t *weights, int32_t y, int32_t x)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t sum = 0;

    for (int32_t i = rows.first; i < rows.end; ++i) {
        for (int32_t j = columns.first; j < columns.end; ++j) {
            int32_t row = y + i * window->dilation_h;
            int32_t column = x + j * window->dilation_w;
            const int8_t *pixel = image + (row * window->input_w + column) * window->input_c;
            const int8_t *weight = weights + (i * window->kernel_w + j) * window->input_c;

            for (int32_t c = 0; c < window->input_c; ++c) {
                sum += (pixel[c] - params->input_zero_point) * weight[c];
            }
        }
    }
    return sum;
}

void FERRULE_KERNEL(const struct ferrule_conv2d_s8_params *params, const int8_t *input,
                    int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t products = window->kernel_h * window->kernel_w * window->input_c;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                int32_t y = i * window->stride_h - window->pad_top;
                int32_t x = j * window->stride_w - window->pad_left;

                for (int32_t c = 0; c < params->output_c; ++c) {
                    int32_t sum = sum_window(params, input, params->weights + c * products, y, x);
                    int32_t value = FERRULE_REQUANTIZE(sum + params->bias[c],
                                                       params->multipliers[c], params->shifts[c]);
                    value = ferrule_add_wrap(value, params->output.zero_point);
                    *output++ =
                        (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
                }
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
