/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

void ferrule_signal_framer(const struct ferrule_signal_framer_params *params, const int16_t *input,
                           const int16_t *samples, const int32_t *frames, int16_t *output,
                           bool *are_whole, int16_t *next_samples, int32_t *next_frames)
{
    const int32_t missing = params->missing;
    const int32_t kept = params->kept;
    const int32_t fresh = params->frames * params->step;
    const int32_t width = kept > 0 ? kept : 1;
    const int32_t before = *frames < 0 ? 0 : *frames > missing ? missing : *frames;
    const int32_t after = before + params->frames;

    *are_whole = before == missing;
    *next_frames = after > missing ? missing : after;

    for (int32_t row = 0; row < params->rows; ++row) {
        for (int32_t frame = 0; frame < params->frames; ++frame) {
            const bool is_whole = before + frame >= missing;

            for (int32_t i = 0; i < params->size; ++i) {
                const int32_t at = frame * params->step + i;

                *output++ = !is_whole ? (int16_t)0 : at < kept ? samples[at] : input[at - kept];
            }
        }
        for (int32_t i = 0; i < width; ++i) {
            const int32_t at = i + fresh;

            next_samples[i] = kept == 0 ? (int16_t)0 : at < kept ? samples[at] : input[at - kept];
        }
        input += fresh;
        samples += width;
        next_samples += width;
    }
}
