/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/batch_matmul.h"

static inline int8_t result(const struct ferrule_batch_matmul_int_params *params, int32_t sum)
{
    int32_t value = ferrule_requantize(sum, params->multiplier, params->shift);

    value = ferrule_add_wrap(value, params->output_zero_point);
    return (int8_t)ferrule_clamp(value, INT8_MIN, INT8_MAX);
}

#define FERRULE_KERNEL        ferrule_batch_matmul_s8
#define FERRULE_PARAMS        ferrule_batch_matmul_int_params
#define FERRULE_ELEMENT       int8_t
#define FERRULE_SUM           int32_t
#define FERRULE_PRODUCT(a, b) (((a) - params->left_zero_point) * ((b) - params->right_zero_point))
#define FERRULE_RESULT(sum)   result(params, sum)
#include "ferrule/kernels/batch_matmul.inc.h"
