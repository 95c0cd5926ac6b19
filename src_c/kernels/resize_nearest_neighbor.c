/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/resize.h"

#include <string.h>

void ferrule_resize_nearest_neighbor(const struct ferrule_resize_nearest_neighbor_params *params,
                                     const void *input, void *output)
{
    const int32_t pixel_bytes = params->pixel_bytes;
    const int32_t input_row = params->input_w * pixel_bytes;
    const int32_t output_row = params->output_w * pixel_bytes;
    const uint8_t *image = (const uint8_t *)input;
    uint8_t *to = (uint8_t *)output;

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < params->output_h; ++i) {
            const uint8_t *row = image + params->rows[i] * input_row;

            if (i > 0 && params->rows[i] == params->rows[i - 1]) {
                (void)memcpy(to, to - output_row, (size_t)output_row);
                to += output_row;
                continue;
            }
            for (int32_t j = 0; j < params->output_w; ++j) {
                (void)memcpy(to, row + params->columns[j] * pixel_bytes, (size_t)pixel_bytes);
                to += pixel_bytes;
            }
        }
        image += params->input_h * input_row;
    }
}
