/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The arithmetic of quantised sums and products; internal to the kernels.
 */
#ifndef FERRULE_KERNELS_SUM_H_INCLUDED
#define FERRULE_KERNELS_SUM_H_INCLUDED

#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/requantize.h"

/** @brief Return a stored value at the common scale. */
static inline int32_t ferrule_term(const struct ferrule_term *term, int32_t stored,
                                   int32_t left_shift)
{
    int32_t value = (stored + term->offset) * ((int32_t)1 << left_shift);

    return ferrule_divide_by_power(ferrule_high_multiply(value, term->multiplier), -term->shift);
}

/** @brief Return the stored value of a sum or product. */
static inline int32_t ferrule_result(const struct ferrule_result *result, int32_t value)
{
    int32_t scaled = ferrule_requantize(value, result->multiplier, result->shift);

    return ferrule_clamp(ferrule_add_wrap(scaled, result->zero_point), result->low, result->high);
}

/**
 * @brief Return a product of at most 17 bits times multiplier / 2^31, shifted to the right by 1 to
 * 22; as ferrule_requantize().
 *
 * The doubling high product rounds halves up, and the shift rounds halves away from zero: it is
 * that of the high product plus half of the last place, less 1 below zero. The sign may be that of
 * the product, since a high product of 0 has the same result with both.
 */
static inline int32_t ferrule_rescaled_product(int32_t product, int32_t multiplier, int32_t right)
{
#if FERRULE_SHORT_MULTIPLY
    /* The lowest bit of the multiplier is apart, so that each product fits into 32 bits. */
    const int32_t odd = (product >> 1) & -(multiplier & 1);
    const int32_t low = product * ((multiplier >> 1) & 0x7fff) + odd;
    const int32_t high = (product * (multiplier >> 16) + (low >> 15) + 0x4000) >> 15;
#else
    const int32_t high = ferrule_high_product_rounded(2 * product, multiplier);
#endif

    return (high - (int32_t)(product < 0) + ((int32_t)1 << (right - 1))) >> right;
}

#endif
