/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A window that slides over the height and width of NHWC images.
 */
#ifndef FERRULE_KERNELS_WINDOW_H_INCLUDED
#define FERRULE_KERNELS_WINDOW_H_INCLUDED

#include <stdint.h>

/** Extents in pixels; every one is positive. Paddings may be 0; with a view, negative, too. */
struct ferrule_window {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t input_c; /**< channels */
    int32_t output_h;
    int32_t output_w;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t stride_h;
    int32_t stride_w;
    int32_t dilation_h;
    int32_t dilation_w;
    int32_t pad_top;
    int32_t pad_left;
};

/**
 * The parts of an image and of an output that a convolution reads and writes, in elements.
 *
 * Groups of channels have the same window, and weights of the same size, one after the other. A
 * kernel that takes a view also takes an array of parameter tables, each with a view of its own.
 */
struct ferrule_view {
    int32_t groups;       /**< of channels; the window's input_c counts those of a group */
    int32_t pixel_c;      /**< from a pixel of the image to the next one */
    int32_t group_output; /**< from the outputs of a group to those of the next one */
    int32_t first;        /**< from the start of the output to the first pixel */
    int32_t column;       /**< from an output pixel to the next one of its row */
    int32_t row;          /**< from a row of output pixels to the next one */
    int32_t image;        /**< from an output image to the next one */
    int32_t more;         /**< 1 if another parameter table follows, otherwise 0 */
};

/** @brief Return the view of all pixels and channels, in the order of memory. */
static inline struct ferrule_view ferrule_whole_view(const struct ferrule_window *window,
                                                     int32_t output_c)
{
    const struct ferrule_view view = {
        .groups = 1,
        .pixel_c = window->input_c,
        .group_output = output_c,
        .column = output_c,
        .row = window->output_w * output_c,
        .image = window->output_h * window->output_w * output_c,
    };

    return view;
}

/** A range of the taps of one axis, the end excluded. */
struct ferrule_taps {
    int32_t first;
    int32_t end;
};

/** @brief Return the taps, starting at `origin` and `dilation` apart, that lie between 0 and
 * `extent`. */
static inline struct ferrule_taps ferrule_taps_inside(int32_t origin, int32_t taps,
                                                      int32_t dilation, int32_t extent)
{
    struct ferrule_taps inside = {0, taps};

    while (inside.first < taps && origin + inside.first * dilation < 0) {
        ++inside.first;
    }
    while (inside.end > inside.first && origin + (inside.end - 1) * dilation >= extent) {
        --inside.end;
    }
    return inside;
}

/** The taps of a window that lie inside an image; distances in elements. */
struct ferrule_inside {
    int32_t rows;
    int32_t columns;
    int32_t row;         /**< of the image, from a row of taps to the next one */
    int32_t column;      /**< from a tap of a row to the next one */
    int32_t first;       /**< from the start of the image to the first tap; 0 if there is none */
    int32_t weights_row; /**< of the weights, from a row of taps to the next one */
    int32_t weights;     /**< from the weights of the window to those of the first tap */
};

/** @brief Return the taps of a window at (y, x), of which each has `tap_weights` weights. */
static inline struct ferrule_inside ferrule_inside(const struct ferrule_window *window, int32_t y,
                                                   int32_t x, int32_t tap_weights)
{
    const struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    const struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    struct ferrule_inside inside = {
        .rows = rows.end - rows.first,
        .columns = columns.end - columns.first,
        .row = window->dilation_h * window->input_w * window->input_c,
        .column = window->dilation_w * window->input_c,
        .weights_row = window->kernel_w * tap_weights,
    };

    if (inside.rows > 0 && inside.columns > 0) {
        const int32_t row = y + rows.first * window->dilation_h;
        const int32_t column = x + columns.first * window->dilation_w;

        inside.first = (row * window->input_w + column) * window->input_c;
        inside.weights = (rows.first * window->kernel_w + columns.first) * tap_weights;
    }
    return inside;
}

#endif
