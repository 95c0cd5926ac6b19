/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D of single pixels with weights in pairs of channels, for each rule of
 * rounding. A kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_s8 does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

#include "ferrule/kernels/paired_pixels.inc.h"

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

static inline void widen_pixel(const struct ferrule_conv2d_paired_s8_params *params,
                               const int8_t *pixel, uint32_t *target)
{
    if (params->inputs != NULL) {
        widen_listed(pixel, params->inputs, params->paired.words, target);
    } else {
        ferrule_widen(pixel, params->paired.words, target, 4);
    }
}

static inline void convolve(const struct ferrule_conv2d_paired_s8_params *params,
                            const int8_t *input, int8_t *output, uint32_t *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    int32_t input_c = window->input_c;
    int32_t output_c = params->paired.output_c;
    int32_t pixels = window->batches * window->output_h * window->output_w;

    for (; pixels > 1; pixels -= 2) {
        widen_pixel(params, input, patches);
        widen_pixel(params, input + input_c, patches + 1);
        ferrule_store_pixels_s8(&params->paired, patches, output, output + output_c, plain);
        input += 2 * input_c;
        output += 2 * output_c;
    }
    if (pixels > 0) {
        widen_pixel(params, input, patches);
        ferrule_store_pixels_s8(&params->paired, patches, output, output, plain);
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *input,
                    int8_t *output, void *scratch)
{
    if (FERRULE_IS_PLAIN(&params->paired.output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
