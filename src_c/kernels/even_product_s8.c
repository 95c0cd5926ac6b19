/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/round_even.h"

#define FERRULE_KERNEL ferrule_even_product_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_even_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS const struct ferrule_even_params even = *params;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)ferrule_clamp(                                                                         \
        ferrule_shift_to_even(((x) + even.first) * ((y) + even.second) * even.multiplier +         \
                                  even.constant,                                                   \
                              even.shift) +                                                        \
            even.zero_point,                                                                       \
        even.low, even.high)
#include "ferrule/kernels/elementwise.inc.h"
