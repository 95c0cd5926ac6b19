/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

static inline int16_t result(const struct ferrule_conv2d_narrow_s16_params *params, uint32_t sum,
                             int32_t c)
{
    const int32_t value = ferrule_requantize((int32_t)(sum + (uint32_t)params->bias[c]),
                                             params->multipliers[c], params->shifts[c]);

    return (int16_t)ferrule_clamp(value, params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_conv2d_narrow_s16
#define FERRULE_PARAMS         ferrule_conv2d_narrow_s16_params
#define FERRULE_ELEMENT        int16_t
#define FERRULE_SUM            uint32_t
#define FERRULE_DATA(x)        (x)
#define FERRULE_OFFSET         0
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/conv2d.inc.h"
