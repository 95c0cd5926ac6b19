/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by int16 LOGISTIC and TANH; internal to the kernels. */
#ifndef FERRULE_KERNELS_SIGMOID_H
#define FERRULE_KERNELS_SIGMOID_H

#include "ferrule/kernels/nonlinear.h"

/* An input on the table's scale: 512 steps per entry of the sigmoid. */
static inline int32_t ferrule_sigmoid_position(const struct ferrule_sigmoid_s16_params *params,
                                               int32_t input)
{
    int64_t rounding = ((int64_t)1 << params->shift) >> 1;

    return (int32_t)(((int64_t)input * params->multiplier + rounding) >> params->shift);
}

/* The sigmoid of a magnitude of 2^bits steps per entry, times 2^(16 + bits); the entry is below
 * 255. */
static inline int32_t ferrule_sigmoid_between(const int16_t *table, int32_t magnitude, int32_t bits)
{
    const int16_t *entry = &table[magnitude >> bits];
    int32_t fraction = magnitude & ((1 << bits) - 1);

    return ((entry[0] + 32768) << bits) + fraction * (entry[1] - entry[0]);
}

#endif
