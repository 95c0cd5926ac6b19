/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/normalize.h"

static float norm_of(const float *input, int32_t depth)
{
    float largest = 0.0f;
    float sum = 0.0f;
    float lost = 0.0f; /* rounding error of the sum (Kahan summation) */

    for (int32_t i = 0; i < depth; ++i) {
        float magnitude = input[i] < 0.0f ? -input[i] : input[i];
        largest = magnitude > largest ? magnitude : largest;
    }

    /* powers of 2, so that the squares of large numbers do not overflow */
    float factor = largest > 1e15f ? 5.421010862427522e-20f : 1.0f;
    float inverse = largest > 1e15f ? 18446744073709551616.0f : 1.0f;

    for (int32_t i = 0; i < depth; ++i) {
        float scaled = input[i] * factor;
        float term = scaled * scaled - lost;
        float next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    if (sum - sum != 0.0f) { /* infinite or not a number, which the correction turns into NaN */
        return largest > 3.4028235e38f && sum == sum ? largest : sum;
    }
    return ferrule_sqrtf(sum) * inverse;
}

void ferrule_l2_normalization_f32(const struct ferrule_rows_f32_params *params, const float *input,
                                  float *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        float norm = norm_of(input, params->depth);

        norm = norm < 1e-6f ? 1e-6f : norm;
        for (int32_t i = 0; i < params->depth; ++i) {
            output[i] = input[i] / norm;
        }
        input += params->depth;
        output += params->depth;
    }
}
