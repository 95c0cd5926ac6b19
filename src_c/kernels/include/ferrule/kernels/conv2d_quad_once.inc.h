/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D in blocks of four channels, for rules with one rounding. A kernel's
 * source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_plain does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/multiply.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

/* The values of the two pixels are adjacent. */
#define BLOCK FERRULE_QUAD
#define DATA  int16_t
#define PUT(at, value, second)                                                                     \
    do {                                                                                           \
        (at)[(second) ? 1 : 0] = (int16_t)(value);                                                 \
        (at) += 2;                                                                                 \
    } while (false)
#define MULTIPLY multiply_quad

/* The second pixel is stored first, so that both may be the same. */
static inline void multiply_quad(const int16_t *data, const int8_t *weights, int32_t products,
                                 const int32_t *scales, int8_t *first, int8_t *second,
                                 const struct ferrule_output_s8 *output, bool plain)
{
    int32_t sums[2 * FERRULE_QUAD];

    ferrule_multiply_quad_sums(data, weights, products, sums);
    for (int32_t c = 0; c < FERRULE_QUAD; ++c) {
        const int32_t place = scales[FERRULE_PLAIN_SCALE_PLACE];

        second[place] = FERRULE_STORE(sums[2 * c + 1], scales, output, plain);
        first[place] = FERRULE_STORE(sums[2 * c], scales, output, plain);
        scales += FERRULE_PLAIN_SCALE_WORDS;
    }
}

#include "ferrule/kernels/conv2d_blocks.inc.h"
