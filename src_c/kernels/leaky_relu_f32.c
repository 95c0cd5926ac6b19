/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

void ferrule_leaky_relu_f32(const struct ferrule_leaky_relu_f32_params *params, const float *input,
                            float *output)
{
    const float alpha = params->alpha;
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        float value = input[i];

        output[i] = value > 0.0f ? value : value * alpha;
    }
}
