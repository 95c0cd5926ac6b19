/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Conversion of sums to stored int8 values on cores without the DSP extension; the results
 * are those of ferrule_requantize, plus the zero point, and clamped.
 */
#ifndef FERRULE_KERNELS_REQUANTIZE_PLAIN_H_INCLUDED
#define FERRULE_KERNELS_REQUANTIZE_PLAIN_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/high_product.h"
#include "ferrule/kernels/paired.h"

/**
 * Constants of a channel: twice the bias (including the contribution of the input's zero point),
 * 31-bit multiplier, right shift (at least 1 unless the output is plain), and half of the last
 * place plus the zero point, before that shift. Channels are consecutive.
 */
enum { FERRULE_PLAIN_SCALE_WORDS = 4 };

/** @brief Return the stored value of a sum; `plain` as in ferrule_is_plain(). */
static inline int8_t ferrule_store_plain(int32_t sum, const int32_t *scale,
                                         const struct ferrule_output_s8 *output, bool plain)
{
    const int32_t twice = (int32_t)((uint32_t)scale[0] + 2u * (uint32_t)sum);
    int32_t high = ferrule_high_product_rounded(twice, scale[1]);

    if (!plain) {
        high -= high < 0 ? 1 : 0; /* halves away from zero */
    }
    const int32_t value = (high + scale[3]) >> scale[2];
    return (int8_t)(plain ? ferrule_saturate_s8(value)
                          : ferrule_clamp(value, output->low, output->high));
}

#endif
