/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"
#include "ferrule/kernels/paired_pixels.h"

void ferrule_conv2d_1x1_paired_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                  const int8_t *input, int8_t *output, void *scratch)
{
    uint32_t *patches = scratch;
    const struct ferrule_window *window = &params->window;
    int32_t pixels = window->batches * window->output_h * window->output_w;

    for (int32_t i = 0; i < pixels; i += 2) {
        int8_t *second = output;

        ferrule_widen(input, params->words, patches, 4);
        input += window->input_c;
        if (i + 1 < pixels) {
            ferrule_widen(input, params->words, patches + 1, 4);
            input += window->input_c;
            second += params->output_c;
        }
        ferrule_store_pixels_s8(patches, params->words, params->weights, params->channels,
                                params->output_c, &params->output, output, second);
        output = second + params->output_c;
    }
}
