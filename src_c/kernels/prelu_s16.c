/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/slope.h"

void ferrule_prelu_s16(const struct ferrule_prelu_params *params, const int16_t *input,
                       const int8_t *alpha, int16_t *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t input_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t alpha_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    const struct ferrule_prelu_params local = *params;
    struct ferrule_broadcast_row row = {0};

    do {
        const int16_t *x = &input[row.first];
        const int8_t *a = &alpha[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            int32_t value = *x - local.input_zero_point;

            if (value >= 0) {
                value = ferrule_apply_slope(&local.positive, value);
            } else {
                value = ferrule_apply_slope(&local.negative, value * (*a - local.alpha_zero_point));
            }
            value = ferrule_add_wrap(value, local.output_zero_point);
            *output++ = (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
            x += input_stride;
            a += alpha_stride;
        }
    } while (ferrule_broadcast_next(&local.shape, &row));
}
