/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d_mve_s16.h"

static void store_row(const struct ferrule_depthwise_conv2d_mve_s16_params *params,
                      const int16_t *image, int32_t y, struct ferrule_mve_depthwise_s16 *run)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    const int16_t *line =
        image + (y + rows.first * window->dilation_h) * window->input_w * window->input_c;
    int32_t last_x = window->input_w - 1 - (window->kernel_w - 1) * window->dilation_w;
    int32_t x = -window->pad_left;

    for (int32_t left = window->output_w; left > 0; left -= run->pixels) {
        struct ferrule_taps columns =
            ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);

        run->pixels = 1;
        if (x >= 0 && x <= last_x) {
            int32_t inside = (last_x - x) / window->stride_w + 1;
            run->pixels = inside < left ? inside : left;
        }
        run->columns = columns.end - columns.first;
        run->rows = run->columns > 0 ? rows.end - rows.first : 0;
        run->first_weight =
            32 + FERRULE_MVE_HALVES * (rows.first * window->kernel_w + columns.first);
        run->skipped = FERRULE_MVE_HALVES * (window->kernel_w - run->columns);
        run->data = line + (x + columns.first * window->dilation_w) * window->input_c;
        if (params->depth_multiplier == 1) {
            ferrule_mve_depthwise_s16(run);
        } else {
            ferrule_mve_depthwise_multiplied_s16(run);
        }
        run->output += run->pixels * run->channels;
        x += run->pixels * window->stride_w;
    }
}

void ferrule_depthwise_conv2d_mve_s16(const struct ferrule_depthwise_conv2d_mve_s16_params *params,
                                      const int16_t *input, int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t pixel_bytes = 2 * window->input_c;
    struct ferrule_mve_depthwise_s16 run = {
        .stream = params->stream,
        .output = output,
        .channels = window->input_c * params->depth_multiplier,
        .row_bytes = window->dilation_h * window->input_w * pixel_bytes,
        .column_bytes = window->dilation_w * pixel_bytes,
        .pixel_bytes = window->stride_w * pixel_bytes,
        .scales = 32 + FERRULE_MVE_HALVES * window->kernel_h * window->kernel_w,
        .low = params->low,
        .high = params->high,
    };

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            store_row(params, input, i * window->stride_h - window->pad_top, &run);
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
