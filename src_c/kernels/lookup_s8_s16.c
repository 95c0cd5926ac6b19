/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lookup.h"

void ferrule_lookup_s8_s16(const struct ferrule_lookup_s8_s16_params *params, const int8_t *input,
                           int16_t *output)
{
    const int16_t *table = params->table + 128;

    for (int32_t i = 0; i < params->elements; ++i) {
        output[i] = table[input[i]];
    }
}
