/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d.h"

static inline int16_t result(const struct ferrule_depthwise_conv2d_s16_params *params, int64_t sum,
                             int32_t channel)
{
    const int32_t value =
        ferrule_requantize_wide(sum, params->multipliers[channel], params->shifts[channel]);

    return (int16_t)ferrule_clamp(value, params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_depthwise_conv2d_s16
#define FERRULE_PARAMS         ferrule_depthwise_conv2d_s16_params
#define FERRULE_ELEMENT        int16_t
#define FERRULE_SUM            int64_t
#define FERRULE_PRODUCT(x, w)  ((int32_t)(x) * (w))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/depthwise_conv2d.inc.h"
