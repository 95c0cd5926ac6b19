/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/requantize.h"

static inline int8_t store(const struct ferrule_reduce_int_params *params, int32_t sum)
{
    int32_t centred = ferrule_add_wrap(sum, params->offset);
    int32_t value = ferrule_requantize(centred, params->multiplier, params->shift);

    value = ferrule_add_wrap(value, params->output_zero_point);
    return (int8_t)ferrule_clamp(value, INT8_MIN, INT8_MAX);
}

#define FERRULE_KERNEL ferrule_reduce_s8
#define FERRULE_PARAMS ferrule_reduce_int_params
#include "ferrule/kernels/reduce_s8.inc.h"
