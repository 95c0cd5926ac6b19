/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_mve_s16.h"

void ferrule_conv2d_mve_s16(const struct ferrule_conv2d_mve_s16_params *params,
                            const int16_t *input, int16_t *output, void *scratch)
{
    const int32_t row_bytes = ferrule_mve_row_bytes(&params->image);
    struct ferrule_mve_batch next = {.count = 0};
    int32_t count;

    while ((count = ferrule_mve_collect(&params->image, (const int8_t *)input, &next, scratch)) !=
           0) {
        ferrule_mve_store_s16(&params->weights, scratch, row_bytes, output, count);
        output += count * params->weights.output_c;
    }
}
