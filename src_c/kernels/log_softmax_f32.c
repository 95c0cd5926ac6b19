/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"
#include "ferrule/kernels/normalize.h"

void ferrule_log_softmax_f32(const struct ferrule_rows_f32_params *params, const float *input,
                             float *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        float maximum = input[0];
        float sum = 0.0f;
        float lost = 0.0f; /* rounding error of the sum (Kahan summation) */

        for (int32_t i = 1; i < params->depth; ++i) {
            maximum = input[i] > maximum ? input[i] : maximum;
        }
        for (int32_t i = 0; i < params->depth; ++i) {
            float term = ferrule_exponential_below(input[i], maximum, 1.0f) - lost;
            float next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }

        float logarithm = ferrule_logf(sum);

        for (int32_t i = 0; i < params->depth; ++i) {
            output[i] = (input[i] - maximum) - logarithm;
        }
        input += params->depth;
        output += params->depth;
    }
}
