/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/round_even.h"

#define FERRULE_KERNEL ferrule_float_product_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_float_product_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const int32_t first_offset = params->first_offset;                                             \
    const int32_t second_offset = params->second_offset;                                           \
    const float factor = params->factor;                                                           \
    const float zero_point = params->zero_point;                                                   \
    const struct ferrule_rounded rounded = params->rounded;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)(ferrule_round_even((float)(((x) + first_offset) * ((y) + second_offset)) * factor +   \
                                    zero_point,                                                    \
                                rounded.low, rounded.high) +                                       \
             rounded.stored_offset)
#include "ferrule/kernels/elementwise.inc.h"
