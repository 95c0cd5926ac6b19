/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/requantize_element.h"

void ferrule_requantize_s16(const struct ferrule_requantize_params *params, const int16_t *input,
                            int16_t *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = (int16_t)ferrule_clamp(ferrule_requantize_element(params, input[i]), INT16_MIN,
                                           INT16_MAX);
    }
}
