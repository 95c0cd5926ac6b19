/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d_mve.h"

/* Compute `count` steps of `lanes` bytes; the taps are those of the first. */
__attribute__((noinline)) static void
compute(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
        struct ferrule_mve_depthwise *run, int32_t lanes, int32_t pixels, int32_t count)
{
    int32_t whole = (lanes + FERRULE_MVE_BYTES - 1) / FERRULE_MVE_BYTES * FERRULE_MVE_BYTES;

    run->lanes = lanes;
    run->count = count;
    run->tap_step = pixels * params->window.stride_w * params->window.input_c - whole;
    run->output_step = lanes - whole;
    if (params->general != 0) {
        ferrule_mve_depthwise_general(run);
    } else {
        ferrule_mve_depthwise_plain(run);
    }
    run->output += count * lanes;
}

/* Set the taps of the pixel whose window begins at (y, x). */
__attribute__((noinline)) static void
set_taps(const struct ferrule_depthwise_conv2d_mve_s8_params *params, const int8_t *image,
         const int8_t *outside, int32_t y, int32_t x, struct ferrule_mve_depthwise *run)
{
    const struct ferrule_window *window = &params->window;
    int32_t tap = 0;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;
        bool inside = row >= 0 && row < window->input_h;
        const int8_t *line = inside ? image + row * window->input_w * window->input_c : outside;
        int32_t column = x;

        for (int32_t j = 0; j < window->kernel_w; ++j) {
            run->taps[tap] = inside && column >= 0 && column < window->input_w
                                 ? line + column * window->input_c
                                 : outside;
            column += window->dilation_w;
            ++tap;
        }
    }
    for (; tap < FERRULE_MVE_TAPS; ++tap) {
        run->taps[tap] = run->taps[0]; /* its weight is 0 */
    }
}

/* Compute pixels whose windows are inside the image; `x` is where the first one begins. */
static void compute_inside(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                           const int8_t *image, int32_t y, int32_t x, int32_t count,
                           struct ferrule_mve_depthwise *run)
{
    int32_t channels = params->window.input_c;
    int32_t steps = params->together > 1 ? count / params->together : 0;
    int32_t left = count - steps * params->together;

    if (steps > 0) {
        set_taps(params, image, NULL, y, x, run);
        compute(params, run, params->together * channels, params->together, steps);
        x += steps * params->together * params->window.stride_w;
    }
    if (left > 0) {
        set_taps(params, image, NULL, y, x, run);
        compute(params, run, channels, 1, left);
    }
}

static void compute_row(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                        const int8_t *image, const int8_t *outside, int32_t y,
                        struct ferrule_mve_depthwise *run)
{
    const struct ferrule_window *window = &params->window;
    int32_t last_row = y + (window->kernel_h - 1) * window->dilation_h;
    int32_t reach = (window->kernel_w - 1) * window->dilation_w;
    bool rows_inside = y >= 0 && last_row < window->input_h;

    for (int32_t j = 0; j < window->output_w;) {
        int32_t x = j * window->stride_w - window->pad_left;
        int32_t room = window->input_w - 1 - reach - x;

        if (rows_inside && x >= 0 && room >= 0) {
            int32_t count = room / window->stride_w + 1;
            int32_t left = window->output_w - j;

            count = count < left ? count : left;
            compute_inside(params, image, y, x, count, run);
            j += count;
        } else {
            set_taps(params, image, outside, y, x, run);
            compute(params, run, window->input_c, 1, 1);
            ++j;
        }
    }
}

void ferrule_depthwise_conv2d_mve_s8(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                                     const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_mve_depthwise run = {
        .stream = params->stream,
        .output = output,
        .zero_point = params->output.zero_point,
        .low = params->output.low,
        .high = params->output.high,
    };

    (void)ferrule_mve_fill(scratch, window->input_c, params->input_zero_point);
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            compute_row(params, input, scratch, i * window->stride_h - window->pad_top, &run);
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
