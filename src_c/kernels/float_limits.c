/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_limits.h"

#include <float.h>
#include <stdbool.h>

#include "ferrule/kernels/float_pixels.h"

#if FERRULE_HAS_VFP

#define FERRULE_EIGHTS       raise_eights
#define FERRULE_LANE(x, y)   FERRULE_RAISED_LANE(x, y)
#define FERRULE_VECTOR(x, y) FERRULE_RAISED_VECTOR(x, y)
#include "ferrule/kernels/float_eights.inc.h"

#define FERRULE_EIGHTS lower_eights
#define FERRULE_LANE(x, y)                                                                         \
    "vcmp.f32 s" #x ", s" #y "\n\t"                                                                \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it gt\n\t"                                                                                    \
    "vmovgt.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vpt.f32 gt, q" #x ", q" #y "\n\t"                                                             \
    "vorrt q" #x ", q" #y ", q" #y "\n\t"
#include "ferrule/kernels/float_eights.inc.h"

static struct ferrule_eights in_place(float *values, int32_t count, const float *limit)
{
    return (struct ferrule_eights){
        .first = values, .first_stride = 1, .second = limit, .output = values, .count = count};
}

static void raise_all(float *values, int32_t count, float low)
{
    struct ferrule_eights eights = in_place(values, count, &low);

    raise_eights(&eights);
    for (int32_t i = count - eights.count; i < count; ++i) {
        values[i] = values[i] < low ? low : values[i];
    }
}

static void lower_all(float *values, int32_t count, float high)
{
    struct ferrule_eights eights = in_place(values, count, &high);

    lower_eights(&eights);
    for (int32_t i = count - eights.count; i < count; ++i) {
        values[i] = values[i] > high ? high : values[i];
    }
}

void ferrule_limit_f32(float *values, int32_t count, float low, float high, float total)
{
    const bool is_finite = total - total == 0.0f;

    if (low > -FLT_MAX || !is_finite) {
        raise_all(values, count, low);
    }
    if (high < FLT_MAX || !is_finite) {
        lower_all(values, count, high);
    }
}

#endif
