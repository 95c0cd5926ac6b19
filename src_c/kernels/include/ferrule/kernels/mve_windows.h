/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The windows of a convolution, collected in scratch for kernels with vector instructions
 * (MVE). Channels count bytes, so that elements may have any size.
 */
#ifndef FERRULE_KERNELS_MVE_WINDOWS_H_INCLUDED
#define FERRULE_KERNELS_MVE_WINDOWS_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/window.h"

/**
 * An image and its windows, whose elements are collected in the order columns, rows, input
 * channels; or rows, columns, input channels, if windows are collected by rows.
 */
struct ferrule_mve_image {
    struct ferrule_window window; /**< input_c is in bytes */
    int32_t input_zero_point;     /**< as a byte */
    int32_t pixels;               /**< collected at once, in one row of the output */
    int32_t shared;  /**< 1 if neighbouring windows share columns in scratch: dilation_w is 1, and
                        stride_w at most kernel_w; otherwise 0 */
    int32_t by_rows; /**< 1 for dilation_w 1 and rows of a window of at most 16 bytes; otherwise 0
                      */
};

/** The place of the next windows: a row of all batches, and a column. It starts with zeros. */
struct ferrule_mve_batch {
    int32_t row;
    int32_t column;
};

/** A row of windows: the image, its first row under them, and the taps that are inside it. */
struct ferrule_mve_band {
    const int8_t *pixels;
    int32_t y;
    struct ferrule_taps inside;
};

/** @brief Return the bytes in scratch from one window to the next. */
static inline int32_t ferrule_mve_row_bytes(const struct ferrule_mve_image *image)
{
    const struct ferrule_window *window = &image->window;
    bool overlapping = image->shared != 0 && image->by_rows == 0;

    return window->kernel_h * window->input_c * (overlapping ? window->stride_w : window->kernel_w);
}

/**
 * @brief Collect the next windows; return their number, 0 after the last ones.
 *
 * Scratch: kernel_h * input_c bytes per column of `pixels` windows, plus 15. Shared windows have
 * (pixels - 1) * stride_w + kernel_w columns; others have pixels * kernel_w. By rows, it is the sum
 * of both, plus 32.
 */
int32_t ferrule_mve_collect(const struct ferrule_mve_image *image, const int8_t *input,
                            struct ferrule_mve_batch *next, void *scratch);

#endif
