/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"
#include "ferrule/kernels/sigmoid.h"

/* tanh x = 2 sigmoid(2 x) - 1: half as many steps per entry double x. */
static inline int16_t hyperbolic_tangent(const struct ferrule_sigmoid_s16_params *params, int16_t x)
{
    int32_t position = ferrule_sigmoid_position(params, x);
    int32_t magnitude = position < 0 ? -position : position;
    int32_t value = 0xffff << 8;

    if ((magnitude >> 8) < 255) {
        value = ferrule_sigmoid_between(params->table, magnitude, 8);
    }
    value -= 1 << 23;
    value = position < 0 ? (1 << 7) - 1 - value : value + (1 << 7);
    return (int16_t)(value >> 8);
}

#define FERRULE_KERNEL    ferrule_tanh_s16
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_sigmoid_s16_params
#define FERRULE_FIRST     int16_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) hyperbolic_tangent(params, x)
#include "ferrule/kernels/elementwise.inc.h"
