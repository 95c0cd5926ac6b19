/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize.h"
#include "my_custom/adder.h"

static int32_t scaled(const struct my_custom_term *term, int32_t left_shift, int8_t stored)
{
    int32_t value = ((int32_t)stored + term->offset) * (INT32_C(1) << left_shift);

    return ferrule_requantize(value, term->multiplier, term->shift);
}

void my_custom_add_s8(const struct my_custom_add_s8 *params, const int8_t *first,
                      const int8_t *second, int8_t *output)
{
    for (int32_t i = 0; i < params->elements; ++i) {
        int32_t sum = scaled(&params->first, params->left_shift, first[i]) +
                      scaled(&params->second, params->left_shift, second[i]);
        int32_t value = ferrule_requantize(sum, params->multiplier, params->shift);

        value = ferrule_add_wrap(value, params->zero_point);
        output[i] = (int8_t)ferrule_clamp(value, params->low, params->high);
    }
}
