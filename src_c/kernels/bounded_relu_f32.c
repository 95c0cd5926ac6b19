/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"
#include "ferrule/kernels/requantize.h"

void ferrule_bounded_relu_f32(const struct ferrule_bounded_relu_f32_params *params,
                              const float *input, float *output)
{
    const float low = params->low;
    const float high = params->high;
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        output[i] = ferrule_clamp_f32(input[i], low, high);
    }
}
