/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an LSTM's gates and cells; internal to the kernels. */
#ifndef FERRULE_KERNELS_SIGMOID_H
#define FERRULE_KERNELS_SIGMOID_H

#include "ferrule/kernels/nonlinear.h"

/* An input, an int16, on the table's scale: 512 steps per entry of the sigmoid. */
static inline int32_t ferrule_sigmoid_position(const struct ferrule_sigmoid_s16_params *params,
                                               int32_t input)
{
    int32_t rounding = (int32_t)((UINT32_C(1) << params->shift) >> 1);

    return (input * params->multiplier + rounding) >> params->shift;
}

/* The sigmoid of a magnitude of 2^bits steps per entry, times 2^(16 + bits); the entry is below
 * 255. */
static inline int32_t ferrule_sigmoid_between(const int16_t *table, int32_t magnitude, int32_t bits)
{
    const int16_t *entry = &table[magnitude >> bits];
    int32_t fraction = magnitude & ((1 << bits) - 1);

    return ((entry[0] + 32768) << bits) + fraction * (entry[1] - entry[0]);
}

/* The logistic function of an input, in Q0.15. */
static inline int16_t ferrule_logistic_element(const struct ferrule_sigmoid_s16_params *params,
                                               int16_t x)
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

/* The hyperbolic tangent of an input, in Q0.15: tanh x = 2 sigmoid(2 x) - 1, with half as many
 * steps per entry for double x. */
static inline int16_t ferrule_tanh_element(const struct ferrule_sigmoid_s16_params *params,
                                           int16_t x)
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

#endif
