/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

static uint32_t scaled_log(uint32_t value, uint32_t scale, const int16_t *table)
{
    int32_t power = 31;

    while ((value >> power) == 0u) {
        --power;
    }

    const uint32_t above = value - (UINT32_C(1) << power);
    const int32_t fraction = (int32_t)(power < 16 ? above << (16 - power) : above >> (power - 16));
    const int32_t segment = fraction >> 9;
    const int32_t rise = table[segment + 1] - table[segment];
    const int32_t between = (rise * (fraction - segment * 512)) >> 16;
    const int32_t binary = power * 65536 + fraction + table[segment] + between;
    const uint32_t natural = (uint32_t)((UINT64_C(45426) * (uint32_t)binary + 32768u) >> 16);

    return (scale * natural + 32768u) >> 16;
}

void ferrule_signal_filter_bank_log(const struct ferrule_signal_filter_bank_log_params *params,
                                    const uint32_t *input, int16_t *output)
{
    for (int32_t i = 0; i < params->channels; ++i) {
        const uint32_t value = input[i] << params->correction_bits;
        const uint32_t result =
            value > 1u ? scaled_log(value, params->output_scale, params->table) : 0u;

        output[i] = (int16_t)(result < INT16_MAX ? result : INT16_MAX);
    }
}
