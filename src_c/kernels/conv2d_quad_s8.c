/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

/* The values of the two pixels are adjacent. */
#define FERRULE_KERNEL   ferrule_conv2d_quad_s8
#define FERRULE_IS_PLAIN ferrule_is_plain
#define BLOCK            FERRULE_QUAD
#define DATA             int16_t
#define PUT(at, value, second)                                                                     \
    do {                                                                                           \
        (at)[(second) ? 1 : 0] = (int16_t)(value);                                                 \
        (at) += 2;                                                                                 \
    } while (false)
#define MULTIPLY(data, weights, products, scales, first, second, output, plain)                    \
    do {                                                                                           \
        if (plain) {                                                                               \
            ferrule_multiply_quad_plain(data, weights, products, scales, first, second);           \
        } else {                                                                                   \
            ferrule_multiply_quad(data, weights, products, scales, first, second, (output)->low,   \
                                  (output)->high);                                                 \
        }                                                                                          \
    } while (false)
#include "ferrule/kernels/conv2d_blocks.inc.h"
