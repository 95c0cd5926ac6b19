/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_fft_auto_scale(const struct ferrule_signal_fft_auto_scale_params *params,
                                   const int16_t *input, int16_t *output, int32_t *bits)
{
    int32_t highest = 0;
    int32_t shift = 0;

    for (int32_t i = 0; i < params->samples; ++i) {
        if (input[i] > highest) {
            highest = input[i];
        } else if (-input[i] > highest) {
            highest = input[i] == INT16_MIN ? INT16_MIN : -input[i]; /* as TensorFlow Lite Micro */
        }
    }
    if (highest > 0) {
        while ((highest << shift) < 16384) {
            ++shift;
        }
    }
    for (int32_t i = 0; i < params->samples; ++i) {
        output[i] = (int16_t)(uint16_t)((uint32_t)input[i] << shift);
    }
    *bits = shift;
}
