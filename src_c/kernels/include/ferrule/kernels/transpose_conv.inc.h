/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a TRANSPOSE_CONV. A kernel's source file defines these macros, then includes
 * this file:
 *
 * FERRULE_KERNEL            name of the kernel
 * FERRULE_PARAMS            struct tag of the parameters
 * FERRULE_ELEMENT           element type
 * FERRULE_WEIGHT            type of the weights
 * FERRULE_SUM               type of the sums
 * FERRULE_PRODUCT(x, w)     the product of an element and a weight
 * FERRULE_RESULT(sum, c)    the stored value of output channel c, without its bias
 */
#include "ferrule/kernels/transpose_conv.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

/* The taps of a window along one axis that add to one pixel of the output: tap first + k * stride
 * comes from pixel `pixel` - k of the image. */
struct taps {
    int32_t first;
    int32_t pixel;
    int32_t count;
};

static struct taps taps_of(int32_t place, int32_t stride, int32_t kernel, int32_t extent)
{
    struct taps taps = {place % stride, place / stride, 0};

    if (taps.pixel >= extent) { /* behind the last pixel */
        taps.first += (taps.pixel - (extent - 1)) * stride;
        taps.pixel = extent - 1;
    }
    if (taps.first < kernel) {
        taps.count = (kernel - 1 - taps.first) / stride + 1;
    }
    if (taps.count > taps.pixel + 1) {
        taps.count = taps.pixel + 1;
    }
    return taps;
}

static FERRULE_SUM sum_taps(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *image,
                            const FERRULE_WEIGHT *weights, struct taps rows, struct taps columns)
{
    const struct ferrule_window *window = &params->window;
    const int32_t depth = window->input_c;
    FERRULE_SUM sum = 0;

    /* in the order of the image, as in convolutions: the bits of floats depend on it */
    for (int32_t i = rows.count - 1; i >= 0; --i) {
        const FERRULE_ELEMENT *row = image + (rows.pixel - i) * window->input_w * depth;
        const FERRULE_WEIGHT *taps =
            weights + (rows.first + i * window->stride_h) * window->kernel_w * depth;

        for (int32_t j = columns.count - 1; j >= 0; --j) {
            const FERRULE_ELEMENT *pixel = row + (columns.pixel - j) * depth;
            const FERRULE_WEIGHT *weight = taps + (columns.first + j * window->stride_w) * depth;

            for (int32_t c = 0; c < depth; ++c) {
                sum += FERRULE_PRODUCT(pixel[c], weight[c]);
            }
        }
    }
    return sum;
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t products = window->kernel_h * window->kernel_w * window->input_c;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            struct taps rows =
                taps_of(i + window->pad_top, window->stride_h, window->kernel_h, window->input_h);

            for (int32_t j = 0; j < window->output_w; ++j) {
                struct taps columns = taps_of(j + window->pad_left, window->stride_w,
                                              window->kernel_w, window->input_w);

                for (int32_t c = 0; c < params->output_c; ++c) {
                    FERRULE_SUM sum =
                        sum_taps(params, input, params->weights + c * products, rows, columns);

                    *output++ = FERRULE_RESULT(sum, c);
                }
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
