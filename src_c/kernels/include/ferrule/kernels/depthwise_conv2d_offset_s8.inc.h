/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D of int8 whose weights have a zero point, for each rule of
 * rounding. A kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/depthwise_conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

#define BLOCK 4

struct taps {
    int32_t rows;
    int32_t columns;
    int32_t row;         /* bytes of the image from one row of taps to the next */
    int32_t column;      /* from one tap of a row to the next */
    int32_t weights_row; /* bytes of the weights from one row of taps to the next */
    int32_t channels;    /* from one tap of a row to the next */
};

/* The sums of BLOCK neighbouring channels, whose pixels are neighbours, too. */
static void add_block(const struct taps *taps, const int8_t *image, const int8_t *weights,
                      int32_t input_zero_point, int32_t weight_zero_point, int32_t *sums)
{
    int32_t sum_0 = sums[0];
    int32_t sum_1 = sums[1];
    int32_t sum_2 = sums[2];
    int32_t sum_3 = sums[3];

    for (int32_t i = 0; i < taps->rows; ++i) {
        const int8_t *pixel = image;
        const int8_t *weight = weights;

        for (int32_t j = taps->columns; j > 0; --j) {
            sum_0 += (pixel[0] - input_zero_point) * (weight[0] - weight_zero_point);
            sum_1 += (pixel[1] - input_zero_point) * (weight[1] - weight_zero_point);
            sum_2 += (pixel[2] - input_zero_point) * (weight[2] - weight_zero_point);
            sum_3 += (pixel[3] - input_zero_point) * (weight[3] - weight_zero_point);
            pixel += taps->column;
            weight += taps->channels;
        }
        image += taps->row;
        weights += taps->weights_row;
    }
    sums[0] = sum_0;
    sums[1] = sum_1;
    sums[2] = sum_2;
    sums[3] = sum_3;
}

static int32_t added(const struct taps *taps, const int8_t *image, const int8_t *weights,
                     int32_t input_zero_point, int32_t weight_zero_point, int32_t sum)
{
    for (int32_t i = 0; i < taps->rows; ++i) {
        const int8_t *pixel = image;
        const int8_t *weight = weights;

        for (int32_t j = taps->columns; j > 0; --j) {
            sum += (*pixel - input_zero_point) * (*weight - weight_zero_point);
            pixel += taps->column;
            weight += taps->channels;
        }
        image += taps->row;
        weights += taps->weights_row;
    }
    return sum;
}

static int8_t stored(const struct ferrule_depthwise_conv2d_offset_s8_params *params, int32_t sum,
                     int32_t channel)
{
    int32_t value = FERRULE_REQUANTIZE(sum, params->multipliers[channel], params->shifts[channel]);

    value = ferrule_add_wrap(value, params->output.zero_point);
    return (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
}

static int8_t *store_pixel(const struct ferrule_depthwise_conv2d_offset_s8_params *params,
                           const int8_t *image, int32_t y, int32_t x, int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    const struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    const int32_t output_c = window->input_c * params->depth_multiplier;
    const struct taps taps = {
        .rows = rows.end - rows.first,
        .columns = columns.end - columns.first,
        .row = window->dilation_h * window->input_w * window->input_c,
        .column = window->dilation_w * window->input_c,
        .weights_row = window->kernel_w * output_c,
        .channels = output_c,
    };
    const int8_t *pixel = image;
    const int8_t *weights = params->weights;

    if (taps.rows > 0 && taps.columns > 0) {
        int32_t row = y + rows.first * window->dilation_h;
        int32_t column = x + columns.first * window->dilation_w;

        pixel += (row * window->input_w + column) * window->input_c;
        weights += (rows.first * window->kernel_w + columns.first) * output_c;
    }
    int32_t channel = 0;

    if (params->depth_multiplier == 1) {
        for (; channel + BLOCK <= output_c; channel += BLOCK) {
            int32_t sums[BLOCK];

            for (int32_t k = 0; k < BLOCK; ++k) {
                sums[k] = params->bias[channel + k];
            }
            add_block(&taps, &pixel[channel], &weights[channel], params->input_zero_point,
                      params->weight_zero_point, sums);
            for (int32_t k = 0; k < BLOCK; ++k) {
                *output++ = stored(params, sums[k], channel + k);
            }
        }
    }
    for (int32_t c = channel; c < window->input_c; ++c) {
        for (int32_t m = 0; m < params->depth_multiplier; ++m) {
            int32_t sum = added(&taps, &pixel[c], &weights[channel], params->input_zero_point,
                                params->weight_zero_point, params->bias[channel]);

            *output++ = stored(params, sum, channel);
            ++channel;
        }
    }
    return output;
}

void FERRULE_KERNEL(const struct ferrule_depthwise_conv2d_offset_s8_params *params,
                    const int8_t *input, int8_t *output)
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
