/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a CONV_2D with groups. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL            name of the kernel
 * FERRULE_PARAMS            struct tag of the parameters
 * FERRULE_ELEMENT           element type
 * FERRULE_WEIGHT            type of the weights
 * FERRULE_SUM               type of the sums
 * FERRULE_PRODUCT(x, w)     the product of an element and a weight
 * FERRULE_RESULT(sum, c)    the stored value of output channel c, without its bias
 */
#include "ferrule/kernels/conv2d_grouped.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

/* `image` is the first channel of the group, `weights` those of the output channel. */
static FERRULE_SUM sum_window(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *image,
                              const FERRULE_WEIGHT *weights, int32_t y, int32_t x)
{
    const struct ferrule_window *window = &params->window;
    const int32_t depth = params->group_input_c;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    FERRULE_SUM sum = 0;

    for (int32_t i = rows.first; i < rows.end; ++i) {
        for (int32_t j = columns.first; j < columns.end; ++j) {
            int32_t row = y + i * window->dilation_h;
            int32_t column = x + j * window->dilation_w;
            const FERRULE_ELEMENT *pixel =
                image + (row * window->input_w + column) * window->input_c;
            const FERRULE_WEIGHT *weight = weights + (i * window->kernel_w + j) * depth;

            for (int32_t c = 0; c < depth; ++c) {
                sum += FERRULE_PRODUCT(pixel[c], weight[c]);
            }
        }
    }
    return sum;
}

static void store_pixel(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *image,
                        int32_t y, int32_t x, FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t products = window->kernel_h * window->kernel_w * params->group_input_c;
    const FERRULE_WEIGHT *weights = params->weights;

    for (int32_t first = 0; first < params->output_c; first += params->group_output_c) {
        for (int32_t c = first; c < first + params->group_output_c; ++c) {
            FERRULE_SUM sum = sum_window(params, image, weights, y, x);

            output[c] = FERRULE_RESULT(sum, c);
            weights += products;
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
