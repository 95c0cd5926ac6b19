/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_mve.h"

/* A row of windows: the image, its first row under them, and the taps that are inside it. */
struct band {
    const int8_t *image;
    int32_t y;
    struct ferrule_taps inside;
};

/* Collect one column of the windows. */
static inline int8_t *collect_column(const struct ferrule_conv2d_mve_s8_params *params,
                                     const struct band *band, int32_t x, int8_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;
    int32_t rows = band->inside.end - band->inside.first;

    if (x < 0 || x >= window->input_w || rows == 0) {
        return ferrule_mve_fill(target, window->kernel_h * channels, params->input_zero_point);
    }
    int32_t first_row = band->y + band->inside.first * window->dilation_h;
    const int8_t *source = band->image + (first_row * window->input_w + x) * channels;
    int32_t step = window->dilation_h * window->input_w * channels;

    if (rows != window->kernel_h) {
        target = ferrule_mve_fill(target, band->inside.first * channels, params->input_zero_point);
    }
    if (channels <= FERRULE_MVE_BYTES) {
        target = ferrule_mve_copy_rows(target, source, channels, rows, step);
    } else {
        for (int32_t i = 0; i < rows; ++i) {
            ferrule_mve_copy(target, source, channels);
            source += step;
            target += channels;
        }
    }
    if (rows != window->kernel_h) {
        target = ferrule_mve_fill(target, (window->kernel_h - band->inside.end) * channels,
                                  params->input_zero_point);
    }
    return target;
}

/* Collect the windows of `count` pixels, the first of which begins at column x. */
static void collect(const struct ferrule_conv2d_mve_s8_params *params, const struct band *band,
                    int32_t x, int32_t count, int8_t *target)
{
    const struct ferrule_window *window = &params->window;

    if (params->shared != 0) {
        int32_t end = x + (count - 1) * window->stride_w + window->kernel_w;

        for (; x < end; ++x) {
            target = collect_column(params, band, x, target);
        }
        return;
    }
    for (; count > 0; --count) {
        for (int32_t j = 0; j < window->kernel_w; ++j) {
            target = collect_column(params, band, x + j * window->dilation_w, target);
        }
        x += window->stride_w;
    }
}

void ferrule_conv2d_mve_s8(const struct ferrule_conv2d_mve_s8_params *params, const int8_t *input,
                           int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    int32_t column_bytes = window->kernel_h * window->input_c;
    int32_t row_bytes = column_bytes * (params->shared != 0 ? window->stride_w : window->kernel_w);
    struct band band = {.image = input};

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            band.y = i * window->stride_h - window->pad_top;
            band.inside =
                ferrule_taps_inside(band.y, window->kernel_h, window->dilation_h, window->input_h);
            for (int32_t j = 0; j < window->output_w; j += params->pixels) {
                int32_t left = window->output_w - j;
                int32_t count = left < params->pixels ? left : params->pixels;

                collect(params, &band, j * window->stride_w - window->pad_left, count, scratch);
                ferrule_mve_store_pixels(&params->weights, scratch, row_bytes, output, count);
                output += count * params->weights.output_c;
            }
        }
        band.image += window->input_h * window->input_w * window->input_c;
    }
}
