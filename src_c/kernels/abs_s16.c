/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"
#include "ferrule/kernels/requantize.h"

#define FERRULE_KERNEL ferrule_abs_s16
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_stored_unary_params
#define FERRULE_FIRST  int16_t
#define FERRULE_OUTPUT int16_t
#define FERRULE_RESULT(x)                                                                          \
    (int16_t)ferrule_clamp(                                                                        \
        ferrule_requantize((x) < 0 ? -(x) : (x), params->multiplier, params->shift), INT16_MIN,    \
        INT16_MAX)
#include "ferrule/kernels/elementwise.inc.h"
