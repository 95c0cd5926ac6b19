/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/nonlinear.h"

void ferrule_tanh_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                      float *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = ferrule_tanhf(input[i]);
    }
}
