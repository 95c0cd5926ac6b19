/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"

void ferrule_dequantize_s8(const struct ferrule_dequantize_params *params, const int8_t *input,
                           float *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = params->scale * (float)(input[i] - params->zero_point);
    }
}
