/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/sum.h"

#define FERRULE_KERNEL ferrule_mul_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_product_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const int32_t first_offset = params->first_offset;                                             \
    const int32_t second_offset = params->second_offset;                                           \
    const struct ferrule_result result = params->result;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)ferrule_result(&result, ((x) + first_offset) * ((y) + second_offset))
#include "ferrule/kernels/elementwise.inc.h"
