/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D of int8 whose weights have a zero point, for each rule of rounding. A
 * kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

#define CHANNELS 4

struct sums {
    uint32_t pixels;             /* of the window */
    uint32_t products[CHANNELS]; /* of pixels and stored weights */
};

/* Adds the pixels of a tap, and their products with the weights of four channels; sums wrap. */
static void add_tap(struct sums *sums, const int8_t *pixel, int32_t count, int32_t zero_point,
                    const int8_t *const *weights, int32_t tap)
{
    const int8_t *first = weights[0] + tap;
    const int8_t *second = weights[1] + tap;
    const int8_t *third = weights[2] + tap;
    const int8_t *fourth = weights[3] + tap;
    struct sums found = *sums;

    for (int32_t c = 0; c < count; ++c) {
        int32_t value = pixel[c] - zero_point;

        found.pixels += (uint32_t)value;
        found.products[0] += (uint32_t)(value * first[c]);
        found.products[1] += (uint32_t)(value * second[c]);
        found.products[2] += (uint32_t)(value * third[c]);
        found.products[3] += (uint32_t)(value * fourth[c]);
    }
    *sums = found;
}

static struct sums sum_window(const struct ferrule_conv2d_offset_s8_params *params,
                              const int8_t *image, const int8_t *const *weights, int32_t y,
                              int32_t x)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    struct sums sums = {0};

    for (int32_t i = rows.first; i < rows.end; ++i) {
        for (int32_t j = columns.first; j < columns.end; ++j) {
            int32_t row = y + i * window->dilation_h;
            int32_t column = x + j * window->dilation_w;

            add_tap(&sums, image + (row * window->input_w + column) * window->input_c,
                    window->input_c, params->input_zero_point, weights,
                    (i * window->kernel_w + j) * window->input_c);
        }
    }
    return sums;
}

static void store_pixel(const struct ferrule_conv2d_offset_s8_params *params, const int8_t *image,
                        int32_t y, int32_t x, int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t products = window->kernel_h * window->kernel_w * window->input_c;

    for (int32_t c = 0; c < params->output_c; c += CHANNELS) {
        int32_t count = ferrule_clamp(params->output_c - c, 0, CHANNELS);
        const int8_t *weights[CHANNELS];

        for (int32_t k = 0; k < CHANNELS; ++k) {
            weights[k] = params->weights + (c + (k < count ? k : 0)) * products;
        }
        struct sums sums = sum_window(params, image, weights, y, x);
        uint32_t offset = (uint32_t)params->weight_zero_point * sums.pixels;

        for (int32_t k = 0; k < count; ++k) {
            uint32_t total = sums.products[k] - offset + (uint32_t)params->bias[c + k];
            int32_t value = FERRULE_REQUANTIZE((int32_t)total, params->multipliers[c + k],
                                               params->shifts[c + k]);
            value = ferrule_add_wrap(value, params->output.zero_point);
            output[c + k] = (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
        }
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_offset_s8_params *params, const int8_t *input,
                    int8_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                store_pixel(params, input, i * window->stride_h - window->pad_top,
                            j * window->stride_w - window->pad_left, output);
                output += params->output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
