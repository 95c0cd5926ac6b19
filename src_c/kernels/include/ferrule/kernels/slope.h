/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file A factor with a sign; internal to the kernels.
 */
#ifndef FERRULE_KERNELS_SLOPE_H_INCLUDED
#define FERRULE_KERNELS_SLOPE_H_INCLUDED

#include "ferrule/kernels/rectify.h"
#include "ferrule/kernels/requantize.h"

/** @brief Return the value times the factor. */
static inline int32_t ferrule_apply_slope(const struct ferrule_slope *slope, int32_t value)
{
    int32_t scaled = ferrule_requantize(value, slope->multiplier, slope->shift);

    return slope->sign < 0 ? -scaled : scaled;
}

#endif
