/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"

void ferrule_dequantize_s16(const struct ferrule_dequantize_params *params, const int16_t *input,
                            float *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = params->scale * (float)(input[i] - params->zero_point);
    }
}
