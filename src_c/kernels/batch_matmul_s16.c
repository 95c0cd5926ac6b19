/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/batch_matmul.h"

static inline int16_t result(const struct ferrule_batch_matmul_int_params *params, int64_t sum)
{
    int32_t value = ferrule_requantize_wide(sum, params->multiplier, params->shift);

    return (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
}

#define FERRULE_KERNEL        ferrule_batch_matmul_s16
#define FERRULE_PARAMS        ferrule_batch_matmul_int_params
#define FERRULE_ELEMENT       int16_t
#define FERRULE_SUM           int64_t
#define FERRULE_PRODUCT(a, b) ((int32_t)(a) * (b))
#define FERRULE_RESULT(sum)   result(params, sum)
#include "ferrule/kernels/batch_matmul.inc.h"
