/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/round.h"

void ferrule_quantize_f32_s16(const struct ferrule_quantize_f32_params *params, const float *input,
                              int16_t *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        int32_t value = ferrule_round(input[i] / params->scale) + params->zero_point;

        output[i] = (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
    }
}
