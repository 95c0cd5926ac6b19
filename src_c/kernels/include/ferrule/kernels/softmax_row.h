/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the softmax kernels with int8 input; internal to the kernels. */
#ifndef FERRULE_KERNELS_SOFTMAX_ROW_H
#define FERRULE_KERNELS_SOFTMAX_ROW_H

#include "ferrule/kernels/reciprocal.h"
#include "ferrule/kernels/softmax.h"

struct ferrule_softmax_row {
    int32_t maximum;
    int32_t scale; /* 1 / sum of the exponentials in Q0, times 2^over_unit */
    int32_t over_unit;
};

static inline int32_t ferrule_softmax_exponential(const struct ferrule_softmax_s8_params *params,
                                                  int32_t difference)
{
    return difference < params->count ? params->exponentials[difference] : 0;
}

/* Returns the values from which the elements of a row are computed. */
static inline struct ferrule_softmax_row
ferrule_softmax_row(const struct ferrule_softmax_s8_params *params, const int8_t *input)
{
    struct ferrule_softmax_row row = {.maximum = INT8_MIN};
    uint32_t sum = 0; /* Q12; unsigned, so that it can hold a sum of 8191 ones */

    for (int32_t i = 0; i < params->depth; ++i) {
        row.maximum = input[i] > row.maximum ? input[i] : row.maximum;
    }
    for (int32_t i = 0; i < params->depth; ++i) {
        int32_t exponential = ferrule_softmax_exponential(params, row.maximum - input[i]);
        sum += ((uint32_t)exponential + (1u << 11)) >> 12;
    }
    row.scale = ferrule_reciprocal(sum, 12, &row.over_unit);
    return row;
}

/* Returns an element as a non-negative multiple of 2^-bits. */
static inline int32_t ferrule_softmax_element(const struct ferrule_softmax_row *row,
                                              int32_t exponential, int32_t bits)
{
    int32_t shift = row->over_unit + 31 - bits;
    uint32_t product = (uint32_t)ferrule_high_multiply(row->scale, exponential);

    /* the product is below 2^31, so a shift by 32 or more gives 0 */
    return shift > 31 ? 0 : (int32_t)((product + (UINT32_C(1) << (shift - 1))) >> shift);
}

#endif
