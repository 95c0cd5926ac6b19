/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

void ferrule_relu_f32(const struct ferrule_relu_f32_params *params, const float *input,
                      float *output)
{
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        output[i] = input[i] < 0.0f ? 0.0f : input[i];
    }
}
