/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_window(const struct ferrule_signal_window_params *params, const int16_t *input,
                           const int16_t *weights, int16_t *output)
{
    for (int32_t row = 0; row < params->rows; ++row) {
        for (int32_t i = 0; i < params->samples; ++i) {
            const int32_t product = ((int32_t)*input++ * weights[i]) >> params->shift;

            *output++ = (int16_t)(product > INT16_MAX   ? INT16_MAX
                                  : product < INT16_MIN ? INT16_MIN
                                                        : product);
        }
    }
}
