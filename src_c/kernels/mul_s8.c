/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/sum.h"

void ferrule_mul_s8(const struct ferrule_product_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    const int32_t first_offset = params->first_offset;
    const int32_t second_offset = params->second_offset;
    const struct ferrule_result result = params->result;
    struct ferrule_broadcast_row row = {0};

    do {
        const int8_t *a = &first[row.first];
        const int8_t *b = &second[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            int32_t product = (*a + first_offset) * (*b + second_offset);

            *output++ = (int8_t)ferrule_result(&result, product);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(&params->shape, &row));
}
