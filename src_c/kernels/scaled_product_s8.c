/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/requantize.h"

static inline int32_t scaled(const struct ferrule_scaled_product_params *params, int32_t product)
{
    int64_t sum = (int64_t)product * params->multiplier + params->constant;

    return ferrule_clamp((int32_t)(sum >> params->shift) + params->zero_point, params->low,
                         params->high);
}

#define FERRULE_KERNEL ferrule_scaled_product_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_scaled_product_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const int32_t first_offset = params->first_offset;                                             \
    const int32_t second_offset = params->second_offset;
#define FERRULE_RESULT(x, y) (int8_t)scaled(params, ((x) + first_offset) * ((y) + second_offset))
#include "ferrule/kernels/elementwise.inc.h"
