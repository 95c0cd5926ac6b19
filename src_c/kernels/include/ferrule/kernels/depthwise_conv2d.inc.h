/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D with any window, weights and scales. A kernel's source file
 * defines these macros, then includes this file:
 *
 * FERRULE_KERNEL          name of the kernel
 * FERRULE_PARAMS          struct tag of the parameters
 * FERRULE_ELEMENT         element type
 * FERRULE_SUM             type of the sums
 * FERRULE_PRODUCT(x, w)   the product of an element and a weight
 * FERRULE_RESULT(sum, c)  the stored value of output channel c
 */
#include "ferrule/kernels/depthwise_conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT) || !defined(FERRULE_RESULT)
#error "define the macros listed at the top of this file"
#endif

#define BLOCK 4

/* Adds the products of BLOCK neighbouring channels, whose pixels are neighbours, too; `channels` is
 * from the weights of a tap to those of the next one. */
static inline void add_block(const struct FERRULE_PARAMS *params,
                             const struct ferrule_inside *inside, const FERRULE_ELEMENT *image,
                             const int8_t *weights, int32_t channels, FERRULE_SUM *sums)
{
    FERRULE_SUM sum_0 = sums[0];
    FERRULE_SUM sum_1 = sums[1];
    FERRULE_SUM sum_2 = sums[2];
    FERRULE_SUM sum_3 = sums[3];

    (void)params;
    for (int32_t i = 0; i < inside->rows; ++i) {
        const FERRULE_ELEMENT *pixel = image + i * inside->row;
        const int8_t *weight = weights + i * inside->weights_row;

        for (int32_t j = inside->columns; j > 0; --j) {
            sum_0 += FERRULE_PRODUCT(pixel[0], weight[0]);
            sum_1 += FERRULE_PRODUCT(pixel[1], weight[1]);
            sum_2 += FERRULE_PRODUCT(pixel[2], weight[2]);
            sum_3 += FERRULE_PRODUCT(pixel[3], weight[3]);
            pixel += inside->column;
            weight += channels;
        }
    }
    sums[0] = sum_0;
    sums[1] = sum_1;
    sums[2] = sum_2;
    sums[3] = sum_3;
}

/* The same of one channel. */
static inline FERRULE_SUM added(const struct FERRULE_PARAMS *params,
                                const struct ferrule_inside *inside, const FERRULE_ELEMENT *image,
                                const int8_t *weights, int32_t channels, FERRULE_SUM sum)
{
    (void)params;
    for (int32_t i = 0; i < inside->rows; ++i) {
        const FERRULE_ELEMENT *pixel = image + i * inside->row;
        const int8_t *weight = weights + i * inside->weights_row;

        for (int32_t j = inside->columns; j > 0; --j) {
            sum += FERRULE_PRODUCT(*pixel, *weight);
            pixel += inside->column;
            weight += channels;
        }
    }
    return sum;
}

static FERRULE_ELEMENT *store_pixel(const struct FERRULE_PARAMS *params,
                                    const FERRULE_ELEMENT *image, int32_t y, int32_t x,
                                    FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t output_c = window->input_c * params->depth_multiplier;
    const struct ferrule_inside inside = ferrule_inside(window, y, x, output_c);
    const FERRULE_ELEMENT *pixel = image + inside.first;
    const int8_t *weights = params->weights + inside.weights;
    int32_t channel = 0;

    /* four sums of 64 bits do not fit into registers */
    if (sizeof(FERRULE_SUM) == 4 && params->depth_multiplier == 1) {
        for (; channel + BLOCK <= output_c; channel += BLOCK) {
            FERRULE_SUM sums[BLOCK];

            for (int32_t k = 0; k < BLOCK; ++k) {
                sums[k] = params->bias[channel + k];
            }
            add_block(params, &inside, &pixel[channel], &weights[channel], output_c, sums);
            for (int32_t k = 0; k < BLOCK; ++k) {
                *output++ = FERRULE_RESULT(sums[k], channel + k);
            }
        }
    }
    for (int32_t c = channel; c < window->input_c; ++c) {
        for (int32_t m = 0; m < params->depth_multiplier; ++m) {
            const FERRULE_SUM sum = added(params, &inside, &pixel[c], &weights[channel], output_c,
                                          params->bias[channel]);

            *output++ = FERRULE_RESULT(sum, channel);
            ++channel;
        }
    }
    return output;
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
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
