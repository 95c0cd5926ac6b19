/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float sign_of(float x)
{
    if (x > 0.0f) {
        return 1.0f;
    }
    if (x < 0.0f) {
        return -1.0f;
    }
    return x == 0.0f ? 0.0f : x; /* 0 for -0, too; x is NaN otherwise */
}

#define FERRULE_KERNEL    ferrule_sign_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) sign_of(x)
#include "ferrule/kernels/elementwise.inc.h"
