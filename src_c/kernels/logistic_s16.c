/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"
#include "ferrule/kernels/sigmoid.h"

static inline int16_t logistic(const struct ferrule_sigmoid_s16_params *params, int16_t x)
{
    int32_t position = ferrule_sigmoid_position(params, x);
    int32_t magnitude = position < 0 ? -position : position;
    int32_t value = 0x7fff << 10;

    if ((magnitude >> 9) < 255) {
        value = ferrule_sigmoid_between(params->table, magnitude, 9);
    }
    value = position < 0 ? (1 << 25) - value + (1 << 9) - 1 : value + (1 << 9);
    return (int16_t)(value >> 10);
}

#define FERRULE_KERNEL    ferrule_logistic_s16
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_sigmoid_s16_params
#define FERRULE_FIRST     int16_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) logistic(params, x)
#include "ferrule/kernels/elementwise.inc.h"
