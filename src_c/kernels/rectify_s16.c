/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/slope.h"

#define FERRULE_KERNEL ferrule_rectify_s16
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_rectify_s16_params
#define FERRULE_FIRST  int16_t
#define FERRULE_OUTPUT int16_t
#define FERRULE_LOCALS                                                                             \
    const struct ferrule_slope positive = params->positive;                                        \
    const struct ferrule_slope negative = params->negative;                                        \
    const int32_t low = params->low;                                                               \
    const int32_t high = params->high;
#define FERRULE_RESULT(x)                                                                          \
    (int16_t)ferrule_clamp(ferrule_apply_slope((x) < 0 ? &negative : &positive, x), low, high)
#include "ferrule/kernels/elementwise.inc.h"
