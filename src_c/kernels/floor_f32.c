/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float floor_of(float x)
{
    const float whole_from = 8388608.0f; /* 2^23: a float32 from here on has no fraction */

    if (!(x > -whole_from && x < whole_from)) {
        return x; /* also NaN */
    }

    float cut = (float)(int32_t)x;

    if (cut == x) {
        return x; /* not `cut`, which has lost the sign of a zero */
    }
    return cut > x ? cut - 1.0f : cut;
}

#define FERRULE_KERNEL    ferrule_floor_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) floor_of(x)
#include "ferrule/kernels/elementwise.inc.h"
