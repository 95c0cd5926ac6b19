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

/** @brief Return the PRELU of a stored value and a stored factor, before clamping.
 *
 * The factor is read only for negative values.
 */
static inline int32_t ferrule_prelu(const struct ferrule_prelu_params *params, int32_t stored,
                                    const int8_t *alpha)
{
    int32_t value = stored - params->input_zero_point;

    if (value >= 0) {
        value = ferrule_apply_slope(&params->positive, value);
    } else {
        value = ferrule_apply_slope(&params->negative, value * (*alpha - params->alpha_zero_point));
    }
    return ferrule_add_wrap(value, params->output_zero_point);
}

#endif
