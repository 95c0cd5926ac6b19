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

#endif
