/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Rounding of float32 to integers, halves to even; internal to the kernels. All functions are
 * pure and need no FPU.
 */
#ifndef FERRULE_KERNELS_ROUND_EVEN_H_INCLUDED
#define FERRULE_KERNELS_ROUND_EVEN_H_INCLUDED

#include <stdint.h>

/**
 * @brief Return the nearest integer, halves to even, clamped to integers within +-2^22; the lowest
 * for NaN.
 */
static inline int32_t ferrule_round_even(float value, float low, float high)
{
    const float whole = 12582912.0f; /* 1.5 * 2^23: a sum with it is rounded to an integer */

    value = value > low ? value : low;
    value = value < high ? value : high;
    return (int32_t)((value + whole) - whole);
}

/** @brief Return value / 2^shift rounded to the nearest integer, halves to even; shift is 1 to 30,
 * and the value stays 2^shift below 2^31. */
static inline int32_t ferrule_shift_to_even(int32_t value, int32_t shift)
{
    int32_t below_half = (INT32_C(1) << (shift - 1)) - 1;

    return (value + below_half + ((value >> shift) & 1)) >> shift;
}

#endif
