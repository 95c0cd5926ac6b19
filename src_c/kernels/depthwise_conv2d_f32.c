/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

static float *store_pixel(const struct ferrule_depthwise_conv2d_f32_params *params,
                          const float *image, int32_t y, int32_t x, float *output)
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
            float sum = 0.0f;

            for (int32_t i = rows.first; i < rows.end; ++i) {
                int32_t row = (y + i * window->dilation_h) * window->input_w;

                for (int32_t j = columns.first; j < columns.end; ++j) {
                    int32_t pixel = (row + x + j * window->dilation_w) * window->input_c + c;
                    int32_t weight = (i * window->kernel_w + j) * output_c + channel;

                    sum += image[pixel] * params->weights[weight];
                }
            }

            *output++ = ferrule_clamp_f32(sum + params->bias[channel], params->low, params->high);
        }
    }
    return output;
}

void ferrule_depthwise_conv2d_f32(const struct ferrule_depthwise_conv2d_f32_params *params,
                                  const float *input, float *output)
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
