/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/softmax.h"
#include "ferrule/kernels/softmax_row.h"

void ferrule_softmax_s8(const struct ferrule_softmax_s8_params *params, const int8_t *input,
                        int8_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        struct ferrule_softmax_row row = ferrule_softmax_row(params, input);

        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t exponential = ferrule_softmax_exponential(params, row.maximum - input[i]);
            int32_t value = ferrule_softmax_element(&row, exponential, 8) + INT8_MIN;
            output[i] = (int8_t)(value > INT8_MAX ? INT8_MAX : value);
        }
        input += params->depth;
        output += params->depth;
    }
}
