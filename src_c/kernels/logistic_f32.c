/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/nonlinear.h"

static inline float logistic(float x)
{
    /* the exponential of a negative number does not overflow and loses no digits when added to 1 */
    float e = ferrule_expf(x < 0.0f ? x : -x);

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#define FERRULE_KERNEL    ferrule_logistic_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_nonlinear_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) logistic(x)
#include "ferrule/kernels/elementwise.inc.h"
