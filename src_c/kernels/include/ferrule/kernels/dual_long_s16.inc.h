/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Pixels of int16 data with sums of 64 bits. A source file defines FERRULE_LONG, the function
 * that adds up those of four channels, then includes this file.
 */
#include "ferrule/kernels/dual_s16.h"

/* Compute and store all channels of a group of a pixel with sums of 64 bits. */
static void store_long(const struct ferrule_conv2d_dual_s16_params *params, const int32_t *stream,
                       const int16_t *data, int16_t *output)
{
    bool once = params->sums == FERRULE_DUAL_ONCE; /* they fit into 32 bits */
    int64_t sums[FERRULE_DUAL_CHANNELS];

    for (int32_t left = params->output_c; left > 0; left -= FERRULE_DUAL_CHANNELS) {
        int32_t first =
            FERRULE_DUAL_CHANNELS - left; /* the last block ends with the last channel */

        stream = FERRULE_LONG(stream, data, sums, params->steps);
        first = first > 0 && params->output_c >= FERRULE_DUAL_CHANNELS ? first : 0;
        for (int32_t c = first; c < FERRULE_DUAL_CHANNELS && c - first < left; ++c) {
            int32_t value = once ? ferrule_high_product((int32_t)sums[c], stream[c])
                                 : ferrule_requantize_wide(sums[c], stream[c],
                                                           stream[FERRULE_DUAL_CHANNELS + c]);

            *output++ = (int16_t)ferrule_clamp(value, params->low, params->high);
        }
        stream += once ? FERRULE_DUAL_CHANNELS : 2 * FERRULE_DUAL_CHANNELS;
    }
}
