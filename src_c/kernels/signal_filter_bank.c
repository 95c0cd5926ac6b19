/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_filter_bank(const struct ferrule_signal_filter_bank_params *params,
                                const uint32_t *input, uint64_t *output)
{
    uint64_t before = 0u;

    for (int32_t band = 0; band < params->bands; ++band) {
        const uint32_t *energies = &input[params->frequency_starts[band]];
        const int16_t *weights = &params->weights[params->weight_starts[band]];
        const int16_t *unweights = &params->unweights[params->weight_starts[band]];
        uint64_t weighted = before;
        uint64_t unweighted = 0u;

        for (int32_t i = 0; i < params->widths[band]; ++i) {
            weighted += (uint64_t)weights[i] * energies[i];
            unweighted += (uint64_t)unweights[i] * energies[i];
        }
        if (band > 0) {
            *output++ = weighted;
        }
        before = unweighted;
    }
}
