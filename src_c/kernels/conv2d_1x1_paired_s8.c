/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

static inline void convolve(const struct ferrule_conv2d_paired_s8_params *params,
                            const int8_t *input, int8_t *output, uint32_t *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    int32_t words = params->paired.words;
    int32_t output_c = params->paired.output_c;
    int32_t pixels = window->batches * window->output_h * window->output_w;

    for (; pixels > 1; pixels -= 2) {
        ferrule_widen(input, words, patches, 4);
        ferrule_widen(input + 4 * words, words, patches + 1, 4);
        ferrule_store_pixels_s8(&params->paired, patches, output, output + output_c, plain);
        input += 8 * words;
        output += 2 * output_c;
    }
    if (pixels > 0) {
        ferrule_widen(input, words, patches, 4);
        ferrule_store_pixels_s8(&params->paired, patches, output, output, plain);
    }
}

void ferrule_conv2d_1x1_paired_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                  const int8_t *input, int8_t *output, void *scratch)
{
    if (ferrule_is_plain(&params->paired.output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
