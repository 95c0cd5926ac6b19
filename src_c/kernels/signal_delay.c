/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_delay(const struct ferrule_signal_delay_params *params, const int16_t *input,
                          const int16_t *samples, int16_t *output, int16_t *next)
{
    const int32_t delay = params->delay;
    const int32_t width = delay > 0 ? delay : 1;

    for (int32_t row = 0; row < params->rows; ++row) {
        for (int32_t i = 0; i < params->samples; ++i) {
            *output++ = i < delay ? samples[i] : input[i - delay];
        }
        for (int32_t i = 0; i < width; ++i) {
            const int32_t at = i + params->samples;

            next[i] = delay == 0 ? (int16_t)0 : at < delay ? samples[at] : input[at - delay];
        }
        input += params->samples;
        samples += width;
        next += width;
    }
}
