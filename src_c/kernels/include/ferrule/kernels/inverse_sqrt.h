/* SPDX-License-Identifier: Apache-2.0 */
/* 1 / sqrt(x) in fixed point, as TensorFlow Lite defines it; internal to the kernels. */
#ifndef FERRULE_KERNELS_INVERSE_SQRT_H
#define FERRULE_KERNELS_INVERSE_SQRT_H

#include "ferrule/kernels/requantize.h"

/* A product with 2^bits, saturated. */
static inline int32_t ferrule_saturated_shift(int32_t value, int32_t bits)
{
    int32_t limit = INT32_MAX >> bits;

    if (value > limit) {
        return INT32_MAX;
    }
    return value < -limit - 1 ? INT32_MIN : value * ((int32_t)1 << bits);
}

/* Returns r with 1 / sqrt(x) = r * 2^(*shift - 31), for x >= 0; 0 counts as 1. */
static inline int32_t ferrule_inverse_sqrt(int32_t x, int32_t *shift)
{
    int32_t right = 11;

    if (x <= 1) {
        *shift = 0;
        return INT32_MAX;
    }
    while (x >= (int32_t)1 << 29) {
        x /= 4;
        ++right;
    }
    while (x < (int32_t)1 << 27) {
        x *= 4;
        --right;
    }

    int32_t quarter = ferrule_divide_by_power(x >> 1, 1); /* Q3 from here on */
    int32_t estimate = (int32_t)1 << 28;

    for (int step = 0; step < 5; ++step) { /* Newton-Raphson */
        int32_t square = ferrule_high_multiply(estimate, estimate);
        int32_t cube = ferrule_saturated_shift(ferrule_high_multiply(square, estimate), 6);
        int32_t next = ferrule_high_multiply((int32_t)3 << 27, estimate) -
                       ferrule_high_multiply(quarter, cube);

        estimate = ferrule_saturated_shift(next, 3);
    }

    int32_t root = ferrule_high_multiply(estimate, 1518500250); /* sqrt(2) / 2 in Q0 */

    if (right < 0) {
        root = ferrule_shift_left_wrap(root, -right);
        right = 0;
    }
    *shift = -right;
    return root;
}

#endif
