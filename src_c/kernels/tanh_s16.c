/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"
#include "ferrule/kernels/sigmoid.h"

/* tanh x = 2 sigmoid(2 x) - 1: half as many steps per entry double x. */
void ferrule_tanh_s16(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                      int16_t *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        int32_t position = ferrule_sigmoid_position(params, input[i]);
        int32_t magnitude = position < 0 ? -position : position;
        int32_t value = 0xffff << 8;

        if ((magnitude >> 8) < 255) {
            value = ferrule_sigmoid_between(params->table, magnitude, 8);
        }
        value -= 1 << 23;
        value = position < 0 ? (1 << 7) - 1 - value : value + (1 << 7);
        output[i] = (int16_t)(value >> 8);
    }
}
