/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

static int32_t bits_of(uint32_t value)
{
    int32_t bits = 0;

    for (; value != 0u; value >>= 1) {
        ++bits;
    }
    return bits;
}

static uint32_t gain_of(uint32_t noise, const int16_t *gains)
{
    if (noise <= 2u) {
        return (uint32_t)gains[noise];
    }

    const int32_t bits = bits_of(noise);
    const int16_t *terms = &gains[4 * bits - 6];
    const int32_t fraction =
        (int32_t)((bits < 11 ? noise << (11 - bits) : noise >> (bits - 11)) & 0x3FFu);
    const int32_t slope = ((terms[2] * fraction) >> 5) + terms[1] * 32;
    const int32_t product = (int32_t)((uint32_t)slope * (uint32_t)fraction);

    return (uint32_t)(int16_t)((((int64_t)product + (1 << 14)) >> 15) + terms[0]);
}

void ferrule_signal_pcan(const struct ferrule_signal_pcan_params *params, const uint32_t *input,
                         const uint32_t *noise, const int16_t *gains, uint32_t *output)
{
    for (int32_t i = 0; i < params->channels; ++i) {
        const uint32_t gain = gain_of(noise[i], gains);
        const uint32_t ratio = (uint32_t)(((uint64_t)input[i] * gain) >> params->snr_shift);

        output[i] = ratio < 8192u ? (ratio * ratio) >> 20 : (ratio >> 6) - 64u; /* Q12 to Q6 */
    }
}
