/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/interpolate.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/softmax.h"

/* Writes the exponentials of a row in Q0.15 to its output and returns their sum. */
static int32_t exponentials(const struct ferrule_softmax_s16_params *params, const int16_t *input,
                            int16_t *output)
{
    int32_t maximum = INT16_MIN;
    int32_t sum = 0;

    for (int32_t i = 0; i < params->depth; ++i) {
        maximum = input[i] > maximum ? input[i] : maximum;
    }
    for (int32_t i = 0; i < params->depth; ++i) {
        int32_t position =
            ferrule_requantize(input[i] - maximum, params->multiplier, params->shift) + INT16_MAX;
        position = position < INT16_MIN ? INT16_MIN : position;
        output[i] = (int16_t)ferrule_interpolate(params->exp_table, position);
        sum += output[i];
    }
    return sum;
}

void ferrule_softmax_s16(const struct ferrule_softmax_s16_params *params, const int16_t *input,
                         int16_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        int32_t sum = exponentials(params, input, output);
        int32_t right = 30;

        while (sum < (int32_t)1 << 30) {
            sum *= 2;
            --right;
        }
        /* the table maps 1 to 2 onto -32768 to 32767 */
        int32_t position = (int32_t)(((uint32_t)sum + (1u << 13)) >> 14);
        position -= (1 << 15) + (1 << 16);
        position = position > INT16_MAX ? INT16_MAX : position;
        int32_t inverse = ferrule_interpolate(params->inverse_table, position);

        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t product = output[i] * inverse;
            int32_t value = (int32_t)(((int64_t)product + ((int64_t)1 << (right - 1))) >> right);
            output[i] = (int16_t)(value > INT16_MAX ? INT16_MAX : value < 0 ? 0 : value);
        }
        input += params->depth;
        output += params->depth;
    }
}
