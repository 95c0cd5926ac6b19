/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of FULLY_CONNECTED in blocks of eight channels, for each rule of rounding. A
 * kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_plain does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/multiply.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

static inline void multiply_row(const struct ferrule_fully_connected_octet_s8_params *params,
                                const int8_t *row, int8_t *output, bool plain)
{
    const struct ferrule_output_s8 common = params->output;
    const int32_t *scale = params->scales;
    const int8_t *weights = params->weights;

    for (int32_t left = params->output_c; left > 0; left -= FERRULE_OCTET) {
        int32_t sums[FERRULE_OCTET];

        ferrule_multiply_octet(row, weights, params->input_c, sums);
        for (int32_t c = 0; c < FERRULE_OCTET && c < left; ++c) {
            *output++ = FERRULE_STORE(sums[c], scale, &common, plain);
            scale += FERRULE_PLAIN_SCALE_WORDS;
        }
        weights += FERRULE_OCTET * params->input_c;
    }
}

void FERRULE_KERNEL(const struct ferrule_fully_connected_octet_s8_params *params,
                    const int8_t *input, int8_t *output)
{
    const bool plain = FERRULE_IS_PLAIN(&params->output);

    for (int32_t r = 0; r < params->rows; ++r) {
        if (plain) {
            multiply_row(params, input, output, true);
        } else {
            multiply_row(params, input, output, false);
        }
        input += params->input_c;
        output += params->output_c;
    }
}
