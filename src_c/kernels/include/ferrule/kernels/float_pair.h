/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Two stored int8 as float32, and a float32 result as stored int8; internal to the kernels.
 * All functions are pure.
 */
#ifndef FERRULE_KERNELS_FLOAT_PAIR_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_PAIR_H_INCLUDED

#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/round_even.h"

static inline float ferrule_first_real(const struct ferrule_float_pair_params *params, int32_t x)
{
    return (float)(x - params->first_zero_point) * params->first_scale;
}

static inline float ferrule_second_real(const struct ferrule_float_pair_params *params, int32_t y)
{
    return (float)(y - params->second_zero_point) * params->second_scale;
}

/** @brief Return the stored value of a result, halves to even; INT8_MIN for NaN. */
static inline int8_t ferrule_pair_stored(const struct ferrule_float_pair_params *params,
                                         float value)
{
    const int32_t zero_point = params->zero_point;

    if (value != value) {
        return INT8_MIN;
    }
    return (int8_t)(ferrule_round_even(value / params->scale, (float)(params->low - zero_point),
                                       (float)(params->high - zero_point)) +
                    zero_point);
}

#endif
