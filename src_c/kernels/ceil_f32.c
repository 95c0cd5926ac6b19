/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float ceil_of(float x)
{
    const float whole_from = 8388608.0f; /* 2^23: a float32 from here on has no fraction */

    if (!(x > -whole_from && x < whole_from)) {
        return x; /* also NaN */
    }

    float cut = (float)(int32_t)x;

    if (cut == x) {
        return x; /* not `cut`, which has lost the sign of a zero */
    }
    if (cut < x) {
        return cut + 1.0f;
    }
    return cut == 0.0f ? -0.0f : cut; /* for values between -1 and 0 */
}

#define FERRULE_KERNEL    ferrule_ceil_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) ceil_of(x)
#include "ferrule/kernels/elementwise.inc.h"
