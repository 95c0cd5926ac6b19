/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d_mve.h"

/* Collect the listed channels of pixels. */
static void collect_listed(const struct ferrule_conv2d_1x1_mve_s8_params *params,
                           const int8_t *input, int8_t *target, int32_t count)
{
    int32_t bytes = params->weights.vectors * FERRULE_MVE_BYTES;

    for (int32_t i = 0; i < count; ++i) {
#if FERRULE_HAS_MVE
        const uint8_t *inputs = params->inputs;
        int8_t *at = target;

        __asm__ volatile("dls lr, %[vectors]\n\t"
                         "1:\n\t"
                         "vldrb.u8 q0, [%[inputs]], #16\n\t"
                         "vldrb.u8 q1, [%[input], q0]\n\t"
                         "vstrb.8 q1, [%[at]], #16\n\t"
                         "le lr, 1b\n\t"
                         : [inputs] "+r"(inputs), [at] "+r"(at)
                         : [input] "r"(input), [vectors] "r"(params->weights.vectors)
                         : "lr", "q0", "q1", "memory");
#else
        for (int32_t k = 0; k < bytes; ++k) {
            target[k] = input[params->inputs[k]];
        }
#endif
        input += params->input_c;
        target += bytes;
    }
}

void ferrule_conv2d_1x1_mve_s8(const struct ferrule_conv2d_1x1_mve_s8_params *params,
                               const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_mve_weights *weights = &params->weights;
    int32_t listed_bytes = weights->vectors * FERRULE_MVE_BYTES;
    int32_t row_bytes = params->inputs != NULL ? listed_bytes : params->input_c;

    for (int32_t left = params->count; left > 0; left -= params->pixels) {
        int32_t count = left < params->pixels ? left : params->pixels;

        if (params->inputs != NULL) {
            collect_listed(params, input, scratch, count);
        } else {
            ferrule_mve_copy(scratch, input, count * params->input_c);
        }
        ferrule_mve_store_pixels(weights, scratch, row_bytes, output, count);
        input += count * params->input_c;
        output += count * weights->output_c;
    }
}
