/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/fused.h"
#include "ferrule/kernels/round_even.h"

#define FERRULE_KERNEL ferrule_fused_sum_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_fused_sum_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const struct ferrule_number first_factor = ferrule_number(params->first_factor);               \
    const struct ferrule_number second_factor = ferrule_number(params->second_factor);             \
    const float constant = params->constant;                                                       \
    const struct ferrule_rounded rounded = params->rounded;                                        \
    const int32_t offset = rounded.stored_offset;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)(ferrule_round_even(                                                                   \
                 ferrule_fused((x) - offset, &first_factor,                                        \
                               ferrule_fused((y) - offset, &second_factor, constant)),             \
                 rounded.low, rounded.high) +                                                      \
             offset)
#include "ferrule/kernels/elementwise.inc.h"
