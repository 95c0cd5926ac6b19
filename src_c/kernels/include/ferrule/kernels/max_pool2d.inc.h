/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of the max_pool2d kernels of integers, for one of them at a time: its source
 * defines FERRULE_KERNEL as its name and FERRULE_ELEMENT as the type of its elements, and includes
 * this.
 */
#include "ferrule/kernels/pool2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define FERRULE_KERNEL and FERRULE_ELEMENT before this"
#endif

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

static void store_pixel(const struct ferrule_pool2d_params *params, const FERRULE_ELEMENT *image,
                        int32_t y, int32_t x, FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
    int32_t width = columns.end - columns.first;
    int32_t to_next_row = (window->input_w - width) * window->input_c;
    const FERRULE_ELEMENT *corner =
        image + ((y + rows.first) * window->input_w + x + columns.first) * window->input_c;

    for (int32_t c = 0; c < window->input_c; ++c) {
        const FERRULE_ELEMENT *pixel = corner + c;
        int32_t maximum = *pixel;

        for (int32_t i = rows.first; i < rows.end; ++i) {
            for (int32_t j = 0; j < width; ++j) {
                maximum = *pixel > maximum ? *pixel : maximum;
                pixel += window->input_c;
            }
            pixel += to_next_row;
        }
        output[c] = (FERRULE_ELEMENT)clamp(maximum, params->low, params->high);
    }
}

void FERRULE_KERNEL(const struct ferrule_pool2d_params *params, const FERRULE_ELEMENT *input,
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
