/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/compare.h"
#include "ferrule/kernels/sum.h"

#define FERRULE_KERNEL ferrule_not_equal_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_compare_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT bool
#define FERRULE_LOCALS                                                                             \
    const struct ferrule_term first_term = params->first;                                          \
    const struct ferrule_term second_term = params->second;
#define FERRULE_RESULT(x, y)                                                                       \
    (ferrule_term(&first_term, x, FERRULE_COMPARE_SHIFT) !=                                        \
     ferrule_term(&second_term, y, FERRULE_COMPARE_SHIFT))
#include "ferrule/kernels/elementwise.inc.h"
