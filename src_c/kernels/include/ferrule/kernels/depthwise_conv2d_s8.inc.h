/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D of int8, for each rule of rounding. A kernel's source file
 * defines these macros, then includes this file:
 *
 * FERRULE_KERNEL                                  name of the kernel
 * FERRULE_REQUANTIZE(sum, multiplier, shift)      the scaled sum, before the zero point is added
 */
#include "ferrule/kernels/depthwise_conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_REQUANTIZE)
#error "define the macros listed at the top of this file"
#endif

static int8_t result(const struct ferrule_depthwise_conv2d_s8_params *params, int32_t sum,
                     int32_t channel)
{
    int32_t value = FERRULE_REQUANTIZE(sum, params->multipliers[channel], params->shifts[channel]);

    value = ferrule_add_wrap(value, params->output.zero_point);
    return (int8_t)ferrule_clamp(value, params->output.low, params->output.high);
}

#define FERRULE_PARAMS        ferrule_depthwise_conv2d_s8_params
#define FERRULE_ELEMENT       int8_t
#define FERRULE_SUM           int32_t
#define FERRULE_PRODUCT(x, w) (((x) - params->input_zero_point) * ((w) - params->weight_zero_point))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/depthwise_conv2d.inc.h"
