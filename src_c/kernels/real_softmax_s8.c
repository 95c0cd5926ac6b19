/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/round_even.h"
#include "ferrule/kernels/softmax.h"

void ferrule_real_softmax_s8(const struct ferrule_real_softmax_params *params, const int8_t *input,
                             int8_t *output)
{
    const int32_t zero_point = params->zero_point;
    const float scale = params->scale;
    const float low = (float)(INT8_MIN - zero_point);
    const float high = (float)(INT8_MAX - zero_point);

    for (int32_t r = 0; r < params->rows; ++r) {
        int32_t maximum = input[0];
        float sum = 0.0f;

        for (int32_t i = 1; i < params->depth; ++i) {
            maximum = input[i] > maximum ? input[i] : maximum;
        }

        const float *exponentials = params->exponentials + (255 - maximum);

        for (int32_t i = 0; i < params->depth; ++i) {
            sum += exponentials[input[i]];
        }
        for (int32_t i = 0; i < params->depth; ++i) {
            output[i] =
                (int8_t)(ferrule_round_even(exponentials[input[i]] / sum / scale, low, high) +
                         zero_point);
        }
        input += params->depth;
        output += params->depth;
    }
}
