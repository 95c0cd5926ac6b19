/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_grouped.h"

static inline int16_t result(const struct ferrule_conv2d_grouped_narrow_s16_params *params,
                             int32_t sum, int32_t c)
{
    int32_t value =
        ferrule_requantize(sum + params->bias[c], params->multipliers[c], params->shifts[c]);

    return (int16_t)ferrule_clamp(value, params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_conv2d_grouped_narrow_s16
#define FERRULE_PARAMS         ferrule_conv2d_grouped_narrow_s16_params
#define FERRULE_ELEMENT        int16_t
#define FERRULE_WEIGHT         int8_t
#define FERRULE_SUM            int32_t
#define FERRULE_PRODUCT(x, w)  ((int32_t)(x) * (w))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/conv2d_grouped.inc.h"
