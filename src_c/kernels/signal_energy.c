/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_energy(const struct ferrule_signal_energy_params *params, const int16_t *input,
                           uint32_t *output)
{
    for (int32_t i = 0; i < params->energies; ++i) {
        const int32_t real = *input++;
        const int32_t imaginary = *input++;
        const uint32_t energy = (uint32_t)(real * real) + (uint32_t)(imaginary * imaginary);

        output[i] = i >= params->start && i < params->end ? energy : 0u;
    }
}
