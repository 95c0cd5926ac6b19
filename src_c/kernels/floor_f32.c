/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float floor_of(float x)
{
    const float whole_from = 8388608.0f; /* 2^23: from here on no float32 has a fraction */

    if (!(x > -whole_from && x < whole_from)) {
        return x; /* NaN, too */
    }

    float cut = (float)(int32_t)x;

    if (cut == x) {
        return x; /* and not `cut`, which has lost the sign of a zero */
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
