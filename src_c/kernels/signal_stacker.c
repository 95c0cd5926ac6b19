/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_stacker(const struct ferrule_signal_stacker_params *params,
                            const int16_t *input, const int16_t *stored, const int32_t *count,
                            int16_t *output, bool *is_whole, int16_t *next_stored,
                            int32_t *next_count)
{
    const int32_t channels = params->channels;
    const int32_t counted = *count < 0 ? 0 : *count > params->frames ? params->frames : *count;
    const int32_t old = counted > 0 ? counted - 1 : 0;
    const int32_t present = old + 1 + (counted > 0 ? 0 : params->left);
    const bool whole = present >= params->frames;
    const int32_t start = whole ? params->step : 0;
    const int32_t room = params->frames > 1 ? params->frames - 1 : 1;

    *is_whole = whole;
    *next_count = present - start + 1;

    for (int32_t frame = 0; frame < params->frames; ++frame) {
        for (int32_t i = 0; i < channels; ++i) {
            const int16_t sample = frame < old ? stored[frame * channels + i] : input[i];

            *output++ = whole ? sample : (int16_t)0;
        }
    }
    for (int32_t frame = 0; frame < room; ++frame) {
        const int32_t at = frame + start;

        for (int32_t i = 0; i < channels; ++i) {
            const int16_t sample = at < old ? stored[at * channels + i] : input[i];

            *next_stored++ = at < present ? sample : (int16_t)0;
        }
    }
}
