/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_filter_bank_spectral_subtraction(
    const struct ferrule_signal_filter_bank_spectral_subtraction_params *params,
    const uint32_t *input, const uint32_t *noise, uint32_t *output, uint32_t *estimate,
    uint32_t *next)
{
    const int32_t bits = params->spectral_subtraction_bits;

    for (int32_t i = 0; i < params->channels; ++i) {
        const uint32_t signal = input[i];
        const uint32_t scaled = signal << params->smoothing_bits;
        const uint64_t sum = (uint64_t)scaled * params->smoothing[i & 1] +
                             (uint64_t)noise[i] * params->one_minus_smoothing[i & 1];
        const uint32_t mean = (uint32_t)(sum >> bits);
        const uint32_t limited = mean > scaled ? scaled : mean;
        const uint32_t rest = (scaled - limited) >> params->smoothing_bits;
        const uint32_t least =
            (uint32_t)(((uint64_t)signal * params->min_signal_remaining) >> bits);

        output[i] = rest > least ? rest : least;
        estimate[i] = params->clamping ? limited : mean;
        next[i] = estimate[i];
    }
}
