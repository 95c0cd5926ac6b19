/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/round_even.h"

static inline int8_t store(const struct ferrule_float_mean_params *params, int32_t sum)
{
    const int32_t zero_point = params->output_zero_point;
    const float low = (float)(INT8_MIN - zero_point);
    const float high = (float)(INT8_MAX - zero_point);
    const float value = (float)(sum + params->offset) * params->factor;

    return (int8_t)(ferrule_round_even(value, low, high) + zero_point);
}

#define FERRULE_KERNEL ferrule_float_mean_s8
#define FERRULE_PARAMS ferrule_float_mean_params
#include "ferrule/kernels/reduce_s8.inc.h"
