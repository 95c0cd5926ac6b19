/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Scaling of accumulators by fixed-point factors, with the arithmetic of TensorFlow Lite
 * Micro.
 *
 * A factor is multiplier * 2^(shift - 31) with 0 <= multiplier < 2^31. All functions are pure.
 */
#ifndef FERRULE_KERNELS_REQUANTIZE_H_INCLUDED
#define FERRULE_KERNELS_REQUANTIZE_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/high_product.h"

/** @brief Add modulo 2^32. */
static inline int32_t ferrule_add_wrap(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/** @brief Shift to the left modulo 2^32, by 0 to 31. */
static inline int32_t ferrule_shift_left_wrap(int32_t value, int32_t shift)
{
    return (int32_t)((uint32_t)value << shift);
}

/** @brief Return round(value * multiplier / 2^31), halves up. */
static inline int32_t ferrule_high_multiply(int32_t value, int32_t multiplier)
{
    return ferrule_doubled_high_product(value, multiplier);
}

/** @brief Return round(value / 2^exponent), halves away from zero; exponent is 0 to 31. */
static inline int32_t ferrule_divide_by_power(int32_t value, int32_t exponent)
{
    int32_t mask = (int32_t)((UINT32_C(1) << exponent) - 1u);
    int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);

    return (value >> exponent) + ((value & mask) > threshold ? 1 : 0);
}

/** @brief Scale a 32-bit accumulator, rounding twice; shift is -31 to 30 and wraps to the left. */
static inline int32_t ferrule_requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    if (shift > 0) {
        return ferrule_high_multiply(ferrule_shift_left_wrap(value, shift), multiplier);
    }
    return ferrule_divide_by_power(ferrule_high_multiply(value, multiplier), -shift);
}

/**
 * @brief Scale an accumulator below 2^47, rounding once.
 *
 * The multiplier is reduced to 15 bits (see `reduced_multiplier` in Python);
 * shift is -31 to 7.
 */
static inline int32_t ferrule_requantize_wide(int64_t value, int32_t multiplier, int32_t shift)
{
    int32_t total_shift = 15 - shift;
    int64_t rounding = (int64_t)1 << (total_shift - 1);

    return (int32_t)((value * multiplier + rounding) >> total_shift);
}

/** @brief Return the value, clamped to the limits. */
static inline int32_t ferrule_clamp(int32_t value, int32_t low, int32_t high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

/** @brief Return the value, clamped to the limits. */
static inline float ferrule_clamp_f32(float value, float low, float high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

#endif
