/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/copy.h"

void ferrule_fill_16(const struct ferrule_fill_params *params, void *output)
{
    const uint16_t value = (uint16_t)params->value;
    uint16_t *elements = output;

    for (int32_t i = 0; i < params->count; ++i) {
        elements[i] = value;
    }
}
