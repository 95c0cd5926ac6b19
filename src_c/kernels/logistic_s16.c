/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"
#include "ferrule/kernels/sigmoid.h"

void ferrule_logistic_s16(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                          int16_t *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        int32_t position = ferrule_sigmoid_position(params, input[i]);
        int32_t magnitude = position < 0 ? -position : position;
        int32_t value = 0x7fff << 10;

        if ((magnitude >> 9) < 255) {
            value = ferrule_sigmoid_between(params->table, magnitude, 9);
        }
        value = position < 0 ? (1 << 25) - value + (1 << 9) - 1 : value + (1 << 9);
        output[i] = (int16_t)(value >> 10);
    }
}
