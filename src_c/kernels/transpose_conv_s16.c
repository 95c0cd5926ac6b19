/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/transpose_conv.h"

static inline int16_t result(const struct ferrule_transpose_conv_s16_params *params, int64_t sum,
                             int32_t c)
{
    int32_t value =
        ferrule_requantize_wide(sum + params->bias[c], params->multipliers[c], params->shifts[c]);

    return (int16_t)ferrule_clamp(value, params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_transpose_conv_s16
#define FERRULE_PARAMS         ferrule_transpose_conv_s16_params
#define FERRULE_ELEMENT        int16_t
#define FERRULE_WEIGHT         int8_t
#define FERRULE_SUM            int64_t
#define FERRULE_PRODUCT(x, w)  ((int32_t)(x) * (w))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/transpose_conv.inc.h"
