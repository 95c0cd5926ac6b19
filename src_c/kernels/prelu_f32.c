/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

void ferrule_prelu_f32(const struct ferrule_prelu_f32_params *params, const float *input,
                       const float *alpha, float *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t input_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t alpha_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    struct ferrule_broadcast_row row = {0};

    do {
        const float *x = &input[row.first];
        const float *a = &alpha[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            *output++ = *x >= 0.0f ? *x : *x * *a;
            x += input_stride;
            a += alpha_stride;
        }
    } while (ferrule_broadcast_next(&params->shape, &row));
}
