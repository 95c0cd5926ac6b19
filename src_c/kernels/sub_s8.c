/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/sum.h"

void ferrule_sub_s8(const struct ferrule_sum_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    const struct ferrule_term first_term = params->first;
    const struct ferrule_term second_term = params->second;
    const struct ferrule_result result = params->result;
    const int32_t left_shift = params->left_shift;
    struct ferrule_broadcast_row row = {0};

    do {
        const int8_t *a = &first[row.first];
        const int8_t *b = &second[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            int32_t x = ferrule_term(&first_term, *a, left_shift);
            int32_t y = ferrule_term(&second_term, *b, left_shift);

            *output++ = (int8_t)ferrule_result(&result, x - y);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(&params->shape, &row));
}
