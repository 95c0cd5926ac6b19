/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

static uint32_t rounded_root(uint64_t value)
{
    const uint32_t highest = (value >> 32) != 0u ? UINT32_MAX : UINT16_MAX;
    uint64_t rest = value;
    uint64_t root = 0u;
    uint64_t bit = UINT64_C(1) << 62;

    while (bit > value) {
        bit >>= 2;
    }
    for (; bit != 0u; bit >>= 2) {
        const uint64_t step = root + bit;

        root >>= 1;
        if (rest >= step) {
            rest -= step;
            root += bit;
        }
    }
    return (uint32_t)root + (rest > root && root != highest ? 1u : 0u);
}

void ferrule_signal_filter_bank_square_root(
    const struct ferrule_signal_filter_bank_square_root_params *params, const uint64_t *input,
    const int32_t *bits, uint32_t *output)
{
    const int32_t shift = *bits < 0 ? 0 : *bits > 31 ? 31 : *bits;

    for (int32_t i = 0; i < params->channels; ++i) {
        output[i] = rounded_root(input[i]) >> shift;
    }
}
