/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

/* The second pixel is added to the first one in each word. */
#define CONVOLVE ferrule_conv2d_duo_s8
#define BLOCK    FERRULE_DUO
#define DATA     uint32_t
#define PUT(at, value, second)                                                                     \
    do {                                                                                           \
        *(at) = (second) ? *(at) + ((uint32_t)(value) << 16) : (uint32_t)(value);                  \
        (at) += 1;                                                                                 \
    } while (false)
#define WEIGHT_BYTES(products) (FERRULE_DUO * (products))
#define MULTIPLY(data, weights, products, sums)                                                    \
    ferrule_multiply_duo(data, (const int32_t *)(const void *)(weights), (products) / 2, sums)
#include "ferrule/kernels/conv2d_blocks.inc.h"
