/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D in blocks of two channels, for each rule of rounding. A kernel's source
 * file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_plain does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/multiply.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

/* The second pixel is added to the first one in each word. */
#define BLOCK FERRULE_DUO
#define DATA  uint32_t
#define PUT(at, value, second)                                                                     \
    do {                                                                                           \
        *(at) = (second) ? *(at) + ((uint32_t)(value) << 16) : (uint32_t)(value);                  \
        (at) += 1;                                                                                 \
    } while (false)
#define MULTIPLY multiply_duo

/* The constants of a channel are read before a value is written. */
static inline void store_channel(const int32_t *sums, const int32_t *scale,
                                 const struct ferrule_output_s8 *output, int8_t *first,
                                 int8_t *second, bool plain)
{
    const int32_t place = scale[FERRULE_PLAIN_SCALE_PLACE];
    const int32_t constants[] = {scale[0], scale[1], scale[2], scale[3]};
    const int8_t one = FERRULE_STORE(sums[0], constants, output, plain);

    second[place] = FERRULE_STORE(sums[1], constants, output, plain);
    first[place] = one;
}

static inline void multiply_duo(const uint32_t *data, const int8_t *weights, int32_t products,
                                const int32_t *scales, int8_t *first, int8_t *second,
                                const struct ferrule_output_s8 *output, bool plain)
{
    int32_t sums[2 * FERRULE_DUO];

    ferrule_multiply_duo(data, (const int32_t *)(const void *)weights, products / 2, sums);
    store_channel(sums, scales, output, first, second, plain);
    store_channel(sums + 2, scales + FERRULE_PLAIN_SCALE_WORDS, output, first, second, plain);
}

#include "ferrule/kernels/conv2d_blocks.inc.h"
