/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/nonlinear.h"

void ferrule_logistic_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                          float *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        float x = input[i];
        /* the exponential of a negative number neither overflows nor loses digits beside 1 */
        float e = ferrule_expf(x < 0.0f ? x : -x);

        output[i] = (x < 0.0f ? e : 1.0f) / (1.0f + e);
    }
}
