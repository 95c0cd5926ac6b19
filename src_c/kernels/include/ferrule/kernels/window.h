/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A window that slides over the height and width of NHWC images.
 */
#ifndef FERRULE_KERNELS_WINDOW_H_INCLUDED
#define FERRULE_KERNELS_WINDOW_H_INCLUDED

#include <stdint.h>

/** Extents in pixels; every one is positive, paddings may be 0. */
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

#endif
