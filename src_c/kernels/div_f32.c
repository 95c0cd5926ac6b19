/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/float_limits.h"
#include "ferrule/kernels/requantize.h"

#define FERRULE_KERNEL ferrule_div_f32
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_binary_f32_params
#define FERRULE_FIRST  float
#define FERRULE_SECOND float
#define FERRULE_OUTPUT float
#define FERRULE_LOCALS                                                                             \
    const float low = params->low;                                                                 \
    const float high = params->high;
#define FERRULE_RESULT(x, y)                ferrule_clamp_f32((x) / (y), low, high)
#define FERRULE_LANE(x, y)                  "vdiv.f32 s" #x ", s" #x ", s" #y "\n\t"
#define FERRULE_TOTAL                       1
#define FERRULE_LIMIT(values, count, total) ferrule_limit_f32(values, count, low, high, total)
#include "ferrule/kernels/elementwise.inc.h"
