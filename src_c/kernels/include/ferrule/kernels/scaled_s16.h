/* SPDX-License-Identifier: Apache-2.0 */
/* Sums scaled to int16 with saturation; internal to the kernels. */
#ifndef FERRULE_KERNELS_SCALED_S16_H
#define FERRULE_KERNELS_SCALED_S16_H

#include <stdbool.h>

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/requantize.h"

/* Half a value, halves up, saturated to int16. */
static inline int32_t ferrule_half_s16(int32_t value)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    int32_t result;
    value += 1;
    __asm__("ssat %0, #16, %1, asr #1" : "=r"(result) : "r"(value) : "cc");
    return result;
#else
    return ferrule_saturate_s16((value + 1) >> 1);
#endif
}

/* A number divided by 2^(less + 1), halves away from zero, saturated to int16. */
static inline int32_t ferrule_divided_s16(int32_t high, int32_t less)
{
    return ferrule_half_s16((high - (int32_t)((uint32_t)high >> 31)) >> less);
}

/* The result of ferrule_requantize for half of `twice`, saturated to int16; `down` says that the
 * shift is to the right. Otherwise `twice` is still below 2^31 after the shift. */
static inline int32_t ferrule_scaled_s16(int32_t twice, int32_t multiplier, int32_t shift,
                                         bool down)
{
    if (down) {
        return ferrule_divided_s16(ferrule_high_product(twice, multiplier), -1 - shift);
    }
    return ferrule_saturate_s16(
        ferrule_high_product(ferrule_shift_left_wrap(twice, shift), multiplier));
}

#endif
