/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"
#include "ferrule/kernels/softmax.h"

void ferrule_softmax_f32(const struct ferrule_softmax_f32_params *params, const float *input,
                         float *output)
{
    const int32_t depth = params->depth;
    const float beta = params->beta;

    for (int32_t r = 0; r < params->rows; ++r) {
        float maximum = input[0];
        float sum = 0.0f;
        float lost = 0.0f; /* rounding error of the sum (Kahan summation) */

        for (int32_t i = 1; i < depth; ++i) {
            maximum = input[i] > maximum ? input[i] : maximum;
        }
        for (int32_t i = 0; i < depth; ++i) {
            const float e = ferrule_exponential_below(input[i], maximum, beta);
            const float term = e - lost;
            const float next = sum + term;
            lost = (next - sum) - term;
            sum = next;
            output[i] = e;
        }
        for (int32_t i = 0; i < depth; ++i) {
            output[i] /= sum;
        }
        input += depth;
        output += depth;
    }
}
