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
 * 31-bit multiplier, right shift (at least 1 unless the output is plain), half of the last place
 * plus the zero point, before that shift, and the channel's place in an output pixel. Channels are
 * consecutive.
 */
enum { FERRULE_PLAIN_SCALE_WORDS = 5, FERRULE_PLAIN_SCALE_PLACE = 4 };

/* The same in assembler for Armv7-M, for twice a sum plus bias; `low` is a free register. The
 * second one rounds halves away from zero, as outputs that are not plain need. */
#define FERRULE_SCALE_PLAIN(sum, low, multiplier, right, rounding)                                 \
    "smull " low ", " sum ", " sum ", " multiplier "\n\t"                                          \
    "add " sum ", " sum ", " low ", lsr #31\n\t"                                                   \
    "add " sum ", " sum ", " rounding "\n\t"                                                       \
    "asr " sum ", " sum ", " right "\n\t"
#define FERRULE_SCALE_GENERAL(sum, low, multiplier, right, rounding)                               \
    "smull " low ", " sum ", " sum ", " multiplier "\n\t"                                          \
    "add " sum ", " sum ", " low ", lsr #31\n\t"                                                   \
    "sub " sum ", " sum ", " sum ", lsr #31\n\t"                                                   \
    "add " sum ", " sum ", " rounding "\n\t"                                                       \
    "asr " sum ", " sum ", " right "\n\t"
#define FERRULE_CLAMP_PLAIN(value) "ssat " value ", #8, " value "\n\t"
#define FERRULE_CLAMP_GENERAL(value, least, most)                                                  \
    "cmp " value ", " least "\n\t"                                                                 \
    "it lt\n\t"                                                                                    \
    "movlt " value ", " least "\n\t"                                                               \
    "cmp " value ", " most "\n\t"                                                                  \
    "it gt\n\t"                                                                                    \
    "movgt " value ", " most "\n\t"

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

/** @brief Return the stored value of a sum by the rule SINGLE or ONNX; `plain` as in
 * ferrule_is_whole_s8(). */
static inline int8_t ferrule_store_plain_single(int32_t sum, const int32_t *scale,
                                                const struct ferrule_output_s8 *output, bool plain)
{
    const struct ferrule_scale constants = {(uint32_t)scale[0], scale[1], scale[2], scale[3]};

    return ferrule_store_single_s8(2u * (uint32_t)sum, &constants, output, plain);
}
static inline int8_t ferrule_store_plain_onnx(int32_t sum, const int32_t *scale,
                                              const struct ferrule_output_s8 *output, bool plain)
{
    const struct ferrule_scale constants = {(uint32_t)scale[0], scale[1], scale[2], scale[3]};

    return ferrule_store_onnx_s8(2u * (uint32_t)sum, &constants, output, plain);
}

#endif
