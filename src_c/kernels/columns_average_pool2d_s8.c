/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/pool2d.h"
#include "ferrule/kernels/round_even.h"

/* Return the mean of a channel of a window: each column is added up for itself. */
static float mean(const struct ferrule_float_pool2d_params *params, const int8_t *corner,
                  int32_t width, int32_t height)
{
    const int32_t to_right = params->window.input_c;
    const int32_t to_next_row = params->window.input_w * to_right;
    float sum = 0.0f;

    for (int32_t j = 0; j < width; ++j) {
        const int8_t *pixel = corner + j * to_right;
        float column = 0.0f;

        for (int32_t i = 0; i < height; ++i) {
            column += (float)(*pixel - params->zero_point) * params->scale;
            pixel += to_next_row;
        }
        sum += column;
    }
    return sum / (float)(width * height);
}

static void store_pixel(const struct ferrule_float_pool2d_params *params, const int8_t *image,
                        int32_t y, int32_t x, int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t offset = params->stored_offset;
    const float low = params->low - (float)offset;
    const float high = params->high - (float)offset;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
    const int8_t *corner =
        image + ((y + rows.first) * window->input_w + x + columns.first) * window->input_c;

    for (int32_t c = 0; c < window->input_c; ++c) {
        float steps = mean(params, corner + c, columns.end - columns.first, rows.end - rows.first) /
                      params->output_scale;

        output[c] =
            (int8_t)(ferrule_round_even(steps + params->output_zero_point, low, high) + offset);
    }
}

void ferrule_columns_average_pool2d_s8(const struct ferrule_float_pool2d_params *params,
                                       const int8_t *input, int8_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                store_pixel(params, input, i * window->stride_h - window->pad_top,
                            j * window->stride_w - window->pad_left, output);
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
