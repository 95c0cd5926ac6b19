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
     * Windows of fewer pixels are divided by a reciprocal: with count * reciprocal = 2^32 + e and e
     * below count, the quotient of a sum n is exact while n * e is below 2^32, and n is at most
     * 2^15 * count plus half of count.
     */
    FERRULE_POOL2D_MOST_DIVIDED = 256
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
#endif

#endif
