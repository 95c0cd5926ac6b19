/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

/* The values of the two pixels are adjacent. */
#define CONVOLVE ferrule_conv2d_quad_s8
#define BLOCK    FERRULE_QUAD
#define DATA     int16_t
#define PUT(at, value, second)                                                                     \
    do {                                                                                           \
        (at)[(second) ? 1 : 0] = (int16_t)(value);                                                 \
        (at) += 2;                                                                                 \
    } while (false)
#define WEIGHT_BYTES(products)                  (FERRULE_QUAD * (products))
#define MULTIPLY(data, weights, products, sums) ferrule_multiply_quad(data, weights, products, sums)
#include "ferrule/kernels/conv2d_blocks.inc.h"
