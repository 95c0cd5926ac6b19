/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/slope.h"

void ferrule_rectify_s16(const struct ferrule_rectify_s16_params *params, const int16_t *input,
                         int16_t *output)
{
    const struct ferrule_slope positive = params->positive;
    const struct ferrule_slope negative = params->negative;
    const int32_t low = params->low;
    const int32_t high = params->high;
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        int32_t value = ferrule_apply_slope(input[i] < 0 ? &negative : &positive, input[i]);

        output[i] = (int16_t)ferrule_clamp(value, low, high);
    }
}
