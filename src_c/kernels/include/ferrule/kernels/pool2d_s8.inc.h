/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an int8 pool that computes several channels together. A kernel's source file
 * defines these names, then includes this file:
 *
 * FERRULE_KERNEL                      name of the kernel
 * FERRULE_2X2, FERRULE_3X3            names of the functions for whole windows of these sizes
 * FERRULE_ANY                         name of the function for windows of any size
 * FERRULE_POOLS                       1 if the source has these functions, 2 if those for 2x2 and
 * 3x3 set_pixels(run)                     prepare for windows of `rows` times `width` pixels
 * pool_blocks(run, window, blocks, rows, width, output)
 *                                     store blocks of FERRULE_POOL2D_BLOCK channels of a pixel
 * pool_rest(run, window, channels, output)
 *                                     store fewer channels
 *
 * These read the channels of a window before they write those of its pixel.
 */
#include "ferrule/kernels/pool2d_run.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_POOLS) || !defined(FERRULE_ANY)
#error "define the names listed at the top of this file"
#endif

#if FERRULE_POOLS != 1
static inline __attribute__((always_inline)) void pool_windows(const struct ferrule_pool2d_run *run,
                                                               int32_t rows, int32_t width)
{
    const int32_t blocks = run->channels / FERRULE_POOL2D_BLOCK;
    const int32_t whole = blocks * FERRULE_POOL2D_BLOCK;
    const int32_t rest = run->channels - whole;
    const int8_t *window = run->first;
    int8_t *output = run->output;

    for (int32_t i = run->count; i > 0; --i) {
        if (blocks > 0) {
            pool_blocks(run, window, blocks, rows, width, output);
        }
        output += whole;
        if (rest > 0) {
            pool_rest(run, window + whole, rest, output);
            output += rest;
        }
        window += run->window_bytes;
    }
}

void FERRULE_ANY(const struct ferrule_pool2d_run *run)
{
    pool_windows(run, run->rows, run->width);
}

#endif

#if FERRULE_POOLS == 0
void FERRULE_2X2(const struct ferrule_pool2d_run *run)
{
    pool_windows(run, 2, 2);
}

void FERRULE_3X3(const struct ferrule_pool2d_run *run)
{
    pool_windows(run, 3, 3);
}

#endif

/* Pool the windows of a row of the output. */
static void pool_row(const struct ferrule_pool2d_params *params, struct ferrule_pool2d_run *run,
                     const int8_t *image, int32_t y)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    const int8_t *line = image + (y + rows.first) * window->input_w * window->input_c;
    int32_t x = -window->pad_left;

    for (int32_t left = window->output_w; left > 0; left -= run->count) {
        struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
        int32_t room = window->input_w - window->kernel_w - x;
        bool whole = rows.end - rows.first == window->kernel_h &&
                     columns.end - columns.first == window->kernel_w;

        run->count = x >= 0 && room >= 0 ? room / window->stride_w + 1 : 1;
        run->count = run->count < left ? run->count : left;
        run->first = line + (x + columns.first) * window->input_c;
        ferrule_pool2d_set_pixels(run, window, rows.end - rows.first, columns.end - columns.first);
        set_pixels(run);
        (whole ? params->whole : params->cut)(run);
        run->output += run->count * window->input_c;
        x += run->count * window->stride_w;
    }
}

void FERRULE_KERNEL(const struct ferrule_pool2d_params *params, const int8_t *input, int8_t *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_pool2d_run run = {
        .output = output,
        .window_bytes = window->stride_w * window->input_c,
        .channels = window->input_c,
        .low = params->low,
        .high = params->high,
    };

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            pool_row(params, &run, input, i * window->stride_h - window->pad_top);
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
