/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"

static void widen_listed(const int8_t *pixel, const int16_t *inputs, int32_t words,
                         uint32_t *target)
{
    for (int32_t i = 0; i < words; ++i) {
        target[0] = ferrule_pair(pixel[inputs[0]], pixel[inputs[2]]);
        target[2] = ferrule_pair(pixel[inputs[1]], pixel[inputs[3]]);
        inputs += 4;
        target += 4;
    }
}

/* The listed inputs of one pixel after the other. */
static void convolve_listed(const struct ferrule_conv2d_1x1_block_s8_params *params,
                            const int8_t *input, int8_t *output, uint32_t *patches)
{
    const struct ferrule_block *block = &params->block;
    struct ferrule_block_pixels pixels = {.pairs = 1};

    for (int32_t left = params->pixels; left > 0; left -= 2) {
        pixels.first = output;
        pixels.second = output;
        widen_listed(input, params->inputs, block->words, patches);
        if (left > 1) {
            input += params->input_c;
            output += block->output_c;
            pixels.second = output;
            widen_listed(input, params->inputs, block->words, patches + 1);
        }
        block->store(block, &pixels, patches);
        input += params->input_c;
        output += block->output_c;
    }
}

void ferrule_conv2d_1x1_block_s8(const struct ferrule_conv2d_1x1_block_s8_params *params,
                                 const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_block *block = &params->block;
    int32_t count = params->pixels;

    if (params->inputs != NULL) {
        convolve_listed(params, input, output, scratch);
        return;
    }
    if (count > 1) {
        struct ferrule_block_pixels pixels = {
            .first = output,
            .second = output + block->output_c,
            .source = input,
            .step_bytes = params->input_c,
            .pairs = count / 2,
        };

        block->store(block, &pixels, scratch);
    }
    if (count % 2 != 0) {
        int8_t *last = output + (count - 1) * block->output_c;
        struct ferrule_block_pixels pixels = {
            .first = last,
            .second = last,
            .source = input + (count - 1) * params->input_c,
            .pairs = 1,
        };

        block->store(block, &pixels, scratch);
    }
}
