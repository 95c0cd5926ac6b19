/* SPDX-License-Identifier: Apache-2.0 */
/* 1 / x in fixed point, as gemmlowp defines it; internal to the kernels. Qm has m integer bits. */
#ifndef FERRULE_KERNELS_RECIPROCAL_H
#define FERRULE_KERNELS_RECIPROCAL_H

#include "ferrule/kernels/requantize.h"

/* 1 / (1 + x) in Q0 for x in Q0, 0 <= x < 1. */
static inline int32_t ferrule_one_over_one_plus(int32_t x)
{
    const int32_t one = (int32_t)1 << 29; /* Q2 from here on */
    const int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) >> 1);
    int32_t estimate = 1515870810 + ferrule_high_multiply(half, -1010580540);

    for (int step = 0; step < 3; ++step) { /* Newton-Raphson */
        int32_t error = one - ferrule_high_multiply(half, estimate);
        estimate += ferrule_high_multiply(estimate, error) * 4;
    }
    return estimate >= (int32_t)1 << 30 ? INT32_MAX : estimate * 2;
}

/* The number of zeros above the highest bit of x, for x > 0. */
static inline int32_t ferrule_leading_zeros(uint32_t x)
{
#if defined(__ARM_FEATURE_CLZ) && __ARM_FEATURE_CLZ
    return __builtin_clz(x);
#else
    int32_t zeros = 0;

    while ((x & UINT32_C(0x80000000)) == 0u) {
        x <<= 1;
        ++zeros;
    }
    return zeros;
#endif
}

/* Returns r in Q0 with 1 / x = r / 2^*shift, for x > 0 in unsigned 32-bit Q(integer_bits). */
static inline int32_t ferrule_reciprocal(uint32_t x, int32_t integer_bits, int32_t *shift)
{
    const int32_t headroom = ferrule_leading_zeros(x);

    x <<= headroom;
    *shift = integer_bits - headroom;
    return ferrule_one_over_one_plus((int32_t)(x & UINT32_C(0x7fffffff)));
}

#endif
