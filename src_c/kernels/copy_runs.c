/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/copy_rows.h"

#include <string.h>

void ferrule_copy_runs(const struct ferrule_copy_params *params, const void *input, void *output)
{
    const int32_t extent = params->extents[FERRULE_COPY_INNER];
    const int32_t input_stride = params->input_strides[FERRULE_COPY_INNER];
    const int32_t output_stride = params->output_strides[FERRULE_COPY_INNER];
    const size_t bytes = (size_t)params->run;
    struct ferrule_copy_row row = ferrule_copy_first_row(params);

    do {
        const uint8_t *from = (const uint8_t *)input + row.input;
        uint8_t *to = (uint8_t *)output + row.output;

        for (int32_t i = 0; i < extent; ++i) {
            (void)memcpy(&to[i * output_stride], &from[i * input_stride], bytes);
        }
    } while (ferrule_copy_next_row(params, &row));
}
