/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of BATCH_MATMUL of int8, for each rule of rounding. A kernel's source file defines
 * these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/batch_matmul.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

static inline int8_t result(const struct ferrule_batch_matmul_int_params *params, int32_t sum)
{
    int32_t value = FERRULE_REQUANTIZE(sum, params->multiplier, params->shift);

    value = ferrule_add_wrap(value, params->output_zero_point);
    return (int8_t)ferrule_clamp(value, INT8_MIN, INT8_MAX);
}

#define FERRULE_PARAMS        ferrule_batch_matmul_int_params
#define FERRULE_ELEMENT       int8_t
#define FERRULE_SUM           int32_t
#define FERRULE_PRODUCT(a, b) (((a) - params->left_zero_point) * ((b) - params->right_zero_point))
#define FERRULE_RESULT(sum)   result(params, sum)
#include "ferrule/kernels/batch_matmul.inc.h"
