/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"
#include "ferrule/kernels/nonlinear.h"

/* Any number, also NaN. */
__attribute__((noinline)) static float logistic_of_any(float x)
{
    float e = ferrule_expf(x < 0.0f ? x : -x);

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float logistic(float x)
{
    union ferrule_exponential_bits bits = {.value = x};

    bits.word |= FERRULE_EXPONENTIAL_SIGN;
    if (bits.word > (FERRULE_EXPONENTIAL_SIGN | FERRULE_EXPONENTIAL_USUAL)) {
        return logistic_of_any(x);
    }

    /* the exponential of a negative number does not overflow and loses no digits when added to 1 */
    float e = ferrule_usual_exponential(bits.value, -0.5f);

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#define FERRULE_KERNEL    ferrule_logistic_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_nonlinear_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) logistic(x)
#include "ferrule/kernels/elementwise.inc.h"
