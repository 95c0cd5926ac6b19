/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/compare.h"
#include "ferrule/kernels/sum.h"

#define FERRULE_NAME(operator) ferrule_##operator##_s8
#define FERRULE_PARAMS         ferrule_compare_params
#define FERRULE_LOCALS                                                                             \
    const struct ferrule_term first_term = params->first;                                          \
    const struct ferrule_term second_term = params->second;
#define FERRULE_TYPE            int8_t
#define FERRULE_IS_ORDERED      1
#define FERRULE_FIRST_VALUE(x)  ferrule_term(&first_term, x, FERRULE_COMPARE_SHIFT)
#define FERRULE_SECOND_VALUE(y) ferrule_term(&second_term, y, FERRULE_COMPARE_SHIFT)
#include "ferrule/kernels/compare.inc.h"
