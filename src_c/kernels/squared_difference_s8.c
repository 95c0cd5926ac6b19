/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/sum.h"

static inline int32_t square(int32_t value)
{
    return value * value;
}

#define FERRULE_KERNEL ferrule_squared_difference_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_sum_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const struct ferrule_term first_term = params->first;                                          \
    const struct ferrule_term second_term = params->second;                                        \
    const struct ferrule_result result = params->result;                                           \
    const int32_t left_shift = params->left_shift;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)ferrule_result(&result, square(ferrule_term(&first_term, x, left_shift) -              \
                                           ferrule_term(&second_term, y, left_shift)))
#include "ferrule/kernels/elementwise.inc.h"
