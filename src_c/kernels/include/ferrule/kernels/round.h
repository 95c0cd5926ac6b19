/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of float32 to integers; internal to the kernels. */
#ifndef FERRULE_KERNELS_ROUND_H
#define FERRULE_KERNELS_ROUND_H

#include <stdint.h>

/* The nearest integer, halves away from zero; within +-2^24, beyond which it saturates; 0 for NaN.
 */
static inline int32_t ferrule_round(float value)
{
#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    /* The conversion to 6 fractional bits rounds towards 0, so that it keeps what is below a half,
     * and makes 0 of a NaN. Negative numbers get half of a unit less 1, which moves halves away. */
    int32_t fixed;

    __asm__("vcvt.s32.f32 %1, %1, #6\n\t"
            "vmov %0, %1\n\t"
            "ssat %0, #31, %0\n\t"
            "add %0, %0, %0, asr #31"
            : "=r"(fixed), "+t"(value)
            :
            : "cc");
    return (fixed + 32) >> 6;
#else
    const float limit = 16777216.0f;

    if (value != value) {
        return 0;
    }
    value = value > limit ? limit : value;
    value = value < -limit ? -limit : value;

    int32_t whole = (int32_t)value;
    float rest = value - (float)whole; /* exact */

    if (rest >= 0.5f) {
        return whole + 1;
    }
    return rest <= -0.5f ? whole - 1 : whole;
#endif
}

#endif
