/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/inverse_sqrt.h"
#include "ferrule/kernels/normalize.h"

void ferrule_l2_normalization_s8(const struct ferrule_l2_normalization_s8_params *params,
                                 const int8_t *input, int8_t *output)
{
    const int32_t output_bits = 7;

    for (int32_t r = 0; r < params->rows; ++r) {
        int32_t sum = 0;
        int32_t shift;

        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t value = input[i] - params->zero_point;
            sum += value * value;
        }

        int32_t inverse = ferrule_inverse_sqrt(sum, &shift);

        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t value = input[i] - params->zero_point;
            int32_t result = ferrule_requantize(value, inverse, shift + output_bits);

            output[i] = (int8_t)ferrule_clamp(result, INT8_MIN, INT8_MAX);
        }
        input += params->depth;
        output += params->depth;
    }
}
