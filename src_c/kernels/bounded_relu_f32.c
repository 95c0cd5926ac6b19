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
#define FERRULE_RESULT(x) ferrule_clamp_f32(x, low, high)
#define FERRULE_LANE(x, y)                                                                         \
    "vcmp.f32 s" #x ", s" #y "\n\t"                                                                \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it mi\n\t"                                                                                    \
    "vmovmi.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vpt.f32 gt, q" #y ", q" #x "\n\t"                                                             \
    "vorrt q" #x ", q" #y ", q" #y "\n\t"
#define FERRULE_CONSTANT                    low
#define FERRULE_LIMIT(values, count, total) ferrule_limit_f32(values, count, -FLT_MAX, high, total)
#include "ferrule/kernels/elementwise.inc.h"
