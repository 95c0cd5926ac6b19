/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What the pooling kernels of int16 share; internal to the kernels.
 */
#ifndef FERRULE_KERNELS_POOL2D_S16_H_INCLUDED
#define FERRULE_KERNELS_POOL2D_S16_H_INCLUDED

#include "ferrule/kernels/depthwise_conv2d_mve_s16.h"
#include "ferrule/kernels/pool2d.h"

enum {
    /**
     * Windows of fewer pixels are multiplied by a reciprocal, which is a little too large, so that
     * halves of both signs are rounded away from zero. A mean that is no half is at least 1 / (2 *
     * count) away from one, and the sum, at most 2^15 * count, times the error of the reciprocal,
     * at most 2^-31, is less.
     */
    FERRULE_POOL2D_MOST_DIVIDED = 182
};

/** The pixels of a window that are inside the image; steps are elements. */
struct ferrule_pool2d_taps {
    int32_t rows;
    int32_t columns;
    int32_t step;
    int32_t to_next_row;
};

#if FERRULE_HAS_DSP
/* For each pixel at [pixel], until those of all rows were used: what `two` does with the words of
 * channels 0 and 1 in w0, of 2 and 3 in w1. */
#define FERRULE_POOL2D_FOUR(two)                                                                   \
    "1:\n\t"                                                                                       \
    "mov %[left], %[columns]\n\t"                                                                  \
    "2:\n\t"                                                                                       \
    "ldr %[w0], [%[pixel]]\n\t"                                                                    \
    "ldr %[w1], [%[pixel], #4]\n\t"                                                                \
    "add %[pixel], %[pixel], %[step], lsl #1\n\t" two "subs %[left], %[left], #1\n\t"              \
    "bne 2b\n\t"                                                                                   \
    "subs %[rows], %[rows], #1\n\t"                                                                \
    "add %[pixel], %[pixel], %[next], lsl #1\n\t"                                                  \
    "bne 1b\n\t"

/* Two channels of a window of 2x2 or 3x3 pixels at a time: `first` takes the word at [window],
 * `tap` the other pixels in [word], and `finish` leaves the results in [first]. */
#define FERRULE_POOL2D_TAP(address, tap) "ldr %[word], " address "\n\t" tap
#define FERRULE_POOL2D_PAIRS(first, taps, finish)                                                  \
    "1:\n\t" first taps finish "subs %[pairs], %[pairs], #1\n\t"                                   \
    "add %[window], %[window], #4\n\t"                                                             \
    "str %[first], [%[output]], #4\n\t"                                                            \
    "bne 1b\n\t"
#define FERRULE_POOL2D_2X2(first, tap, finish)                                                     \
    FERRULE_POOL2D_PAIRS(                                                                          \
        first,                                                                                     \
        FERRULE_POOL2D_TAP(                                                                        \
            "[%[window], %[step]]",                                                                \
            tap) "add %[row], %[window], %[line]\n\t" FERRULE_POOL2D_TAP("[%[row]]", tap)          \
            FERRULE_POOL2D_TAP("[%[row], %[step]]", tap),                                          \
        finish)
#define FERRULE_POOL2D_MORE(row, tap)                                                              \
    FERRULE_POOL2D_TAP("[" row ", %[step]]", tap)                                                  \
    FERRULE_POOL2D_TAP("[" row ", %[step], lsl #1]", tap)
#define FERRULE_POOL2D_3X3(first, tap, finish)                                                     \
    FERRULE_POOL2D_PAIRS(                                                                          \
        first,                                                                                     \
        FERRULE_POOL2D_MORE(                                                                       \
            "%[window]", tap) "add %[row], %[window], %[line]\n\t" FERRULE_POOL2D_TAP("[%[row]]",  \
                                                                                      tap)         \
            FERRULE_POOL2D_MORE(                                                                   \
                "%[row]", tap) "add %[row], %[row], %[line]\n\t" FERRULE_POOL2D_TAP("[%[row]]",    \
                                                                                    tap)           \
                FERRULE_POOL2D_MORE("%[row]", tap),                                                \
        finish)
#endif

#endif
