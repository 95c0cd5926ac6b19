/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/pool2d.h"
#include "ferrule/kernels/round_even.h"

static inline float stored(const struct ferrule_float_pool2d_params *params, float mean)
{
    const int32_t offset = params->stored_offset;

    return (float)(ferrule_round_even(mean / params->output_scale + params->output_zero_point,
                                      params->low - (float)offset, params->high - (float)offset) +
                   offset);
}

#define FERRULE_KERNEL         ferrule_float_average_pool2d_s8
#define FERRULE_PARAMS         ferrule_float_pool2d_params
#define FERRULE_ELEMENT        int8_t
#define FERRULE_VALUE          float
#define FERRULE_FIRST(element) 0.0f
#define FERRULE_NEXT(value, element)                                                               \
    ((value) + (float)((element) - params->zero_point) * params->scale)
#define FERRULE_LAST(value, count) stored(params, (value) / (float)(count))
#include "ferrule/kernels/pool2d.inc.h"
