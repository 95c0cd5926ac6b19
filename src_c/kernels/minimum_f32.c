/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

void ferrule_minimum_f32(const struct ferrule_broadcast *shape, const float *first,
                         const float *second, float *output)
{
    const int32_t extent = shape->extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = shape->first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = shape->second_strides[FERRULE_BROADCAST_INNER];
    struct ferrule_broadcast_row row = {0};

    do {
        const float *a = &first[row.first];
        const float *b = &second[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            *output++ = *a < *b ? *a : *b;
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(shape, &row));
}
