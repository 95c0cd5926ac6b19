/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_mve_s16.h"

void ferrule_fully_connected_mve_s16(const struct ferrule_fully_connected_mve_s16_params *params,
                                     const int16_t *input, int16_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        ferrule_mve_store_wide_s16(&params->weights, input, output);
        input += params->weights.products;
        output += params->weights.output_c;
    }
}
