/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#include <float.h>

#include "ferrule/kernels/float_limits.h"
#include "ferrule/kernels/requantize.h"

#define FERRULE_KERNEL ferrule_bounded_relu_f32
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_bounded_relu_f32_params
#define FERRULE_FIRST  float
#define FERRULE_OUTPUT float
#define FERRULE_LOCALS                                                                             \
    const float low = params->low;                                                                 \
    const float high = params->high;
#define FERRULE_RESULT(x)                   ferrule_clamp_f32(x, low, high)
#define FERRULE_LANE(x, y)                  FERRULE_RAISED_LANE(x, y)
#define FERRULE_VECTOR(x, y)                FERRULE_RAISED_VECTOR(x, y)
#define FERRULE_CONSTANT                    low
#define FERRULE_LIMIT(values, count, total) ferrule_limit_f32(values, count, -FLT_MAX, high, total)
#include "ferrule/kernels/elementwise.inc.h"
