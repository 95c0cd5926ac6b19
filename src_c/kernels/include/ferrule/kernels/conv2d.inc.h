/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D with any weights and scales, and groups of channels. A kernel's source
 * file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL          name of the kernel
 * FERRULE_PARAMS          struct tag of the parameters
 * FERRULE_ELEMENT         element type
 * FERRULE_SUM             type of the sums; those of uint32_t wrap
 * FERRULE_DATA(x)         an element less its zero point
 * FERRULE_OFFSET          the weights' zero point
 * FERRULE_RESULT(sum, c)  the stored value of output channel c
 */
#include <stdbool.h>

#include "ferrule/kernels/conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT) || !defined(FERRULE_RESULT)
#error "define the macros listed at the top of this file"
#endif

enum {
    CHANNELS = 4,
    TOGETHER = 256 /* products of 24 bits whose sums have 32 bits */
};

/* Of the data with the stored weights of each channel. */
struct sums {
    FERRULE_SUM products[CHANNELS];
};

/* Data and weights that are neighbours in memory: all taps of a row, or single ones. */
struct runs {
    int32_t count; /* of a row */
    int32_t length;
};

static inline struct runs runs_of(const struct ferrule_inside *inside, int32_t depth)
{
    if (inside->column == depth) {
        return (struct runs){1, inside->columns * depth};
    }
    return (struct runs){inside->columns, depth};
}

/* Adds the products of neighbouring data with the weights of two to four channels, which are
 * `products` apart. */
static inline void add_four(const struct FERRULE_PARAMS *params, struct sums *sums,
                            const FERRULE_ELEMENT *data, int32_t count, const int8_t *first,
                            int32_t products, int32_t channels)
{
    const int8_t *second = first + products;
    const int8_t *third = channels > 2 ? second + products : second;
    const int8_t *fourth = channels > 3 ? third + products : third;
    uint32_t sum_0 = 0;
    uint32_t sum_1 = 0;
    uint32_t sum_2 = 0;
    uint32_t sum_3 = 0;

    (void)params;
    for (int32_t i = 0; i < count; ++i) {
        const int32_t value = FERRULE_DATA(data[i]);

        sum_0 += (uint32_t)(value * first[i]);
        sum_1 += (uint32_t)(value * second[i]);
        sum_2 += (uint32_t)(value * third[i]);
        sum_3 += (uint32_t)(value * fourth[i]);
    }
    sums->products[0] += (FERRULE_SUM)(int32_t)sum_0;
    sums->products[1] += (FERRULE_SUM)(int32_t)sum_1;
    sums->products[2] += (FERRULE_SUM)(int32_t)sum_2;
    sums->products[3] += (FERRULE_SUM)(int32_t)sum_3;
}

/* The same of one channel. */
static inline void add_one(const struct FERRULE_PARAMS *params, struct sums *sums,
                           const FERRULE_ELEMENT *data, int32_t count, const int8_t *weights)
{
    uint32_t sum = 0;

    (void)params;
    for (int32_t i = 0; i < count; ++i) {
        sum += (uint32_t)(FERRULE_DATA(data[i]) * weights[i]);
    }
    sums->products[0] += (FERRULE_SUM)(int32_t)sum;
}

/* `image` and `weights` are at the first tap. */
__attribute__((noinline)) static struct sums
sum_window(const struct FERRULE_PARAMS *params, const struct ferrule_inside *inside,
           const FERRULE_ELEMENT *image, const int8_t *weights, int32_t products, int32_t channels)
{
    const struct runs runs = runs_of(inside, params->group_input_c);
    struct sums sums = {0};

    for (int32_t i = 0; i < inside->rows; ++i) {
        const FERRULE_ELEMENT *data = image + i * inside->row;
        const int8_t *weight = weights + i * inside->weights_row;

        for (int32_t j = 0; j < runs.count; ++j) {
            int32_t count = runs.length;

            for (int32_t done = 0; done < runs.length; done += count) {
                if (sizeof(FERRULE_SUM) > 4) {
                    count = runs.length - done < TOGETHER ? runs.length - done : TOGETHER;
                }
                if (channels > 1) {
                    add_four(params, &sums, data + done, count, weight + done, products, channels);
                } else {
                    add_one(params, &sums, data + done, count, weight + done);
                }
            }
            data += inside->column;
            weight += runs.length;
        }
    }
    return sums;
}

/* The sum of a window's data. Few layers need it, and inlined, it would take registers of all. */
__attribute__((noinline)) static FERRULE_SUM sum_data(const struct FERRULE_PARAMS *params,
                                                      const struct ferrule_inside *inside,
                                                      const FERRULE_ELEMENT *image)
{
    const struct runs runs = runs_of(inside, params->group_input_c);
    FERRULE_SUM sum = 0;

    for (int32_t i = 0; i < inside->rows; ++i) {
        const FERRULE_ELEMENT *data = image + i * inside->row;

        for (int32_t j = 0; j < runs.count; ++j) {
            for (int32_t k = 0; k < runs.length; ++k) {
                const int32_t value = FERRULE_DATA(data[k]);

                sum += (FERRULE_SUM)value;
            }
            data += inside->column;
        }
    }
    return sum;
}

__attribute__((noinline)) static void store_pixel(const struct FERRULE_PARAMS *params,
                                                  const FERRULE_ELEMENT *image, int32_t y,
                                                  int32_t x, FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t products = window->kernel_h * window->kernel_w * params->group_input_c;
    const struct ferrule_inside inside = ferrule_inside(window, y, x, params->group_input_c);
    const int8_t *weights = params->weights + inside.weights;

    image += inside.first;
    for (int32_t end = params->group_output_c; end <= params->output_c;
         end += params->group_output_c) {
        const FERRULE_SUM offset =
            FERRULE_OFFSET == 0 ? 0
                                : (FERRULE_SUM)FERRULE_OFFSET * sum_data(params, &inside, image);

        for (int32_t c = end - params->group_output_c; c < end; c += CHANNELS) {
            const int32_t count = end - c < CHANNELS ? end - c : CHANNELS;
            const struct sums sums =
                sum_window(params, &inside, image, weights + c * products, products, count);

            for (int32_t k = 0; k < count; ++k) {
                output[c + k] = FERRULE_RESULT(sums.products[k] - offset, c + k);
            }
        }
        image += params->group_input_c;
    }
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
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
