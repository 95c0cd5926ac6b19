/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

static inline int16_t result(const struct ferrule_conv2d_s16_params *params, int64_t sum, int32_t c)
{
    const int32_t value =
        ferrule_requantize_wide(sum + params->bias[c], params->multipliers[c], params->shifts[c]);

    return (int16_t)ferrule_clamp(value, params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_conv2d_s16
#define FERRULE_PARAMS         ferrule_conv2d_s16_params
#define FERRULE_ELEMENT        int16_t
#define FERRULE_SUM            int64_t
#define FERRULE_DATA(x)        (x)
#define FERRULE_OFFSET         0
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/conv2d.inc.h"
