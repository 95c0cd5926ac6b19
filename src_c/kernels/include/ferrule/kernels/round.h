/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of float32 to integers; internal to the kernels. */
#ifndef FERRULE_KERNELS_ROUND_H
#define FERRULE_KERNELS_ROUND_H

#include <stdint.h>

/* The nearest integer, halves away from zero; within +-2^24, beyond which it saturates; 0 for NaN.
 */
static inline int32_t ferrule_round(float value)
{
    const float limit = 16777216.0f;

    if (value != value) {
        return 0;
    }
    value = value > limit ? limit : value;
    value = value < -limit ? -limit : value;

    int32_t whole = (int32_t)value;
    float rest = value - (float)whole; /* exact */

    if (rest >= 0.5f) {
        return whole + 1;
    }
    return rest <= -0.5f ? whole - 1 : whole;
}

#endif
