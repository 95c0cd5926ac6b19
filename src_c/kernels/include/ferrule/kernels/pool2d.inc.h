/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a pooling kernel. A kernel's source file defines these macros, then includes
 * this file:
 *
 * FERRULE_KERNEL               name of the kernel
 * FERRULE_PARAMS               struct tag of the parameters
 * FERRULE_ELEMENT              element type
 * FERRULE_VALUE                type of the computation
 * FERRULE_FIRST(element)       initial value of a window, from its first element
 * FERRULE_NEXT(value, element) the value after one more element
 * FERRULE_LAST(value, count)   the result before clamping
 */
#include "ferrule/kernels/pool2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

static FERRULE_VALUE clamp(FERRULE_VALUE value, FERRULE_VALUE low, FERRULE_VALUE high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

static void store_pixel(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *image,
                        int32_t y, int32_t x, FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
    int32_t width = columns.end - columns.first;
    int32_t count = width * (rows.end - rows.first);
    int32_t to_next_row = (window->input_w - width) * window->input_c;
    const FERRULE_ELEMENT *corner =
        image + ((y + rows.first) * window->input_w + x + columns.first) * window->input_c;

    (void)count; /* unused by a maximum */
    for (int32_t c = 0; c < window->input_c; ++c) {
        const FERRULE_ELEMENT *pixel = corner + c;
        FERRULE_VALUE value = FERRULE_FIRST(*pixel);

        for (int32_t i = rows.first; i < rows.end; ++i) {
            for (int32_t j = 0; j < width; ++j) {
                value = FERRULE_NEXT(value, *pixel);
                pixel += window->input_c;
            }
            pixel += to_next_row;
        }
        output[c] = (FERRULE_ELEMENT)clamp(FERRULE_LAST(value, count), params->low, params->high);
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
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
