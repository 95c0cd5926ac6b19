/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"
#include "ferrule/kernels/exponential.h"

static inline float exponential(float x)
{
    union ferrule_exponential_bits bits = {.value = x};
    union ferrule_exponential_bits half = {.value = 0.5f};

    half.word |= bits.word & FERRULE_EXPONENTIAL_SIGN;
    if ((bits.word & ~FERRULE_EXPONENTIAL_SIGN) > FERRULE_EXPONENTIAL_USUAL) {
        return ferrule_expf(x);
    }
    return ferrule_usual_exponential(x, half.value);
}

#define FERRULE_KERNEL    ferrule_exp_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) exponential(x)
#include "ferrule/kernels/elementwise.inc.h"
