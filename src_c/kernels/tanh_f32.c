/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"
#include "ferrule/kernels/nonlinear.h"

#define LEAST UINT32_C(0x38D1B717) /* the bits of 1e-4 */
#define MOST  UINT32_C(0x4111999A) /* the bits of 9.1 */

static inline float hyperbolic_tangent(float x)
{
    union ferrule_exponential_bits bits = {.value = x};
    const uint32_t sign = bits.word & FERRULE_EXPONENTIAL_SIGN;

    bits.word ^= sign;
    if (bits.word - LEAST > MOST - LEAST) {
        return ferrule_tanhf(x);
    }
    bits.value = ferrule_usual_tanh(bits.value);
    bits.word |= sign;
    return bits.value;
}

#define FERRULE_KERNEL    ferrule_tanh_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_nonlinear_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) hyperbolic_tangent(x)
#include "ferrule/kernels/elementwise.inc.h"
