/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/requantize.h"

void ferrule_sub_f32(const struct ferrule_binary_f32_params *params, const float *first,
                     const float *second, float *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    const float low = params->low;
    const float high = params->high;
    struct ferrule_broadcast_row row = {0};

    do {
        const float *a = &first[row.first];
        const float *b = &second[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            float value = *a - *b;

            *output++ = ferrule_clamp_f32(value, low, high);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(&params->shape, &row));
}
