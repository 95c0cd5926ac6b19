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

/** An image and its windows, whose elements are collected in the order columns, rows, input
 * channels. */
struct ferrule_mve_image {
    struct ferrule_window window; /**< input_c is in bytes */
    struct ferrule_view view;     /**< of the image, pixel_c is in bytes */
    int32_t input_zero_point;     /**< as a byte */
    int32_t pixels;               /**< collected at once, in one row of the output */
    int32_t apart;                /**< pixels of the output from a window to the next one that is
                                     collected with it, less than output_w or 1; a row takes so many turns */
    int32_t advance; /**< columns of scratch from a window to the next one if they share columns:
                        apart * stride_w / dilation_w; 0 if they do not */
};

enum { FERRULE_MVE_LANES_8 = 16, FERRULE_MVE_LANES_16 = 8 };

/**
 * How columns of windows are collected. Of few channels, the bytes of several columns are read at
 * once: the place of each lane in the image and in scratch is here. Lanes that are left over repeat
 * the first one.
 */
struct ferrule_mve_lanes {
    int32_t source_step; /**< from a column to the next one in the image, in bytes */
    int32_t target_step; /**< the same in scratch */
    int32_t columns;     /**< that are read at once; 0 if they are copied one by one */
    bool wide;           /**< whether there are 8 lanes of 16 bits, not 16 of 8 */
    uint8_t source_8[FERRULE_MVE_LANES_8];
    uint8_t target_8[FERRULE_MVE_LANES_8];
    uint16_t source_16[FERRULE_MVE_LANES_16];
    uint16_t target_16[FERRULE_MVE_LANES_16];
};

/** The windows that were collected last. It starts with zeros. */
struct ferrule_mve_batch {
    int32_t row;    /**< of the output, of all batches */
    int32_t turn;   /**< of the row: the column of its first window */
    int32_t column; /**< of the first window */
    int32_t group;  /**< of channels */
    int32_t count;  /**< of windows */
    struct ferrule_mve_lanes lanes;
};

/** @brief Return the bytes in scratch from one window to the next. */
static inline int32_t ferrule_mve_row_bytes(const struct ferrule_mve_image *image)
{
    const struct ferrule_window *window = &image->window;

    return window->kernel_h * window->input_c *
           (image->advance != 0 ? image->advance : window->kernel_w);
}

/**
 * @brief Collect the next windows; return their number, 0 after the last ones.
 *
 * The windows of all groups of channels follow one another before those of the next pixels.
 * Scratch: kernel_h * input_c bytes per column of `pixels` windows, plus 15. Shared windows have
 * (pixels - 1) * advance + kernel_w columns; others have pixels * kernel_w.
 */
int32_t ferrule_mve_collect(const struct ferrule_mve_image *image, const int8_t *input,
                            struct ferrule_mve_batch *batch, void *scratch);

#endif
