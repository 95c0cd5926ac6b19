/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/copy_rows.h"

void ferrule_copy_64(const struct ferrule_copy_params *params, const void *input, void *output)
{
    const int32_t extent = params->extents[FERRULE_COPY_INNER];
    const int32_t input_stride = params->input_strides[FERRULE_COPY_INNER];
    const int32_t output_stride = params->output_strides[FERRULE_COPY_INNER];
    struct ferrule_copy_row row = ferrule_copy_first_row(params);

    do {
        const uint64_t *from = (const uint64_t *)input + row.input;
        uint64_t *to = (uint64_t *)output + row.output;

        for (int32_t i = 0; i < extent; ++i) {
            to[i * output_stride] = from[i * input_stride];
        }
    } while (ferrule_copy_next_row(params, &row));
}
