/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"

void ferrule_hard_swish_f32(const struct ferrule_nonlinear_f32_params *params, const float *input,
                            float *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        float x = input[i];
        float gate = x + 3.0f;

        gate = gate < 0.0f ? 0.0f : gate;
        gate = gate > 6.0f ? 6.0f : gate;
        output[i] = x * (gate / 6.0f); /* in this order large numbers don't overflow */
    }
}
