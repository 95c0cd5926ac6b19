/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/transpose_conv.h"

static inline int8_t result(const struct ferrule_transpose_conv_s8_params *params, int32_t sum,
                            int32_t c)
{
    int32_t value =
        ferrule_requantize(sum + params->bias[c], params->multipliers[c], params->shifts[c]);

    value = ferrule_add_wrap(value, params->output.zero_point);
    return (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
}

#define FERRULE_KERNEL         ferrule_transpose_conv_s8
#define FERRULE_PARAMS         ferrule_transpose_conv_s8_params
#define FERRULE_ELEMENT        int8_t
#define FERRULE_WEIGHT         int8_t
#define FERRULE_SUM            int32_t
#define FERRULE_PRODUCT(x, w)  (((x) - params->input_zero_point) * (w))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/transpose_conv.inc.h"
