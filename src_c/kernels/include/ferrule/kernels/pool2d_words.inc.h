/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a pooling kernel that computes four channels at a time. A kernel's source file
 * defines these names, then includes this file:
 *
 * FERRULE_KERNEL         name of the kernel
 * pool_four(params, pixels, output)  store four channels of a pixel
 * pool_one(params, pixels, output)   store one channel of a pixel
 *
 * The channels of a pixel are read before they are written.
 */
#include "ferrule/kernels/pool2d.h"

#ifndef FERRULE_KERNEL
#error "define the names listed at the top of this file"
#endif

static void store_pixel(const struct ferrule_pool2d_params *params,
                        struct ferrule_pool2d_pixels pixels, int8_t *output)
{
    int32_t left = params->window.input_c;
    int32_t count = pixels.width * pixels.rows;

    if (pixels.row_bytes == 0 && count <= FERRULE_POOL2D_MOST_COLUMNS) { /* whole rows */
        pixels.width = count;
        pixels.rows = 1;
    }
    for (; left >= 4; left -= 4) {
        pool_four(params, &pixels, output);
        pixels.first += 4;
        output += 4;
    }
    for (; left > 0; --left) {
        pool_one(params, &pixels, output);
        pixels.first += 1;
        output += 1;
    }
}

void FERRULE_KERNEL(const struct ferrule_pool2d_params *params, const int8_t *input, int8_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                int32_t y = i * window->stride_h - window->pad_top;
                int32_t x = j * window->stride_w - window->pad_left;

                store_pixel(params, ferrule_pool2d_pixels(window, input, y, x), output);
                output += window->input_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
