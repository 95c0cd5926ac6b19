/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/multiply.h"

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
            *output++ = ferrule_store_plain(sums[c], scale, &common, plain);
            scale += FERRULE_PLAIN_SCALE_WORDS;
        }
        weights += FERRULE_OCTET * params->input_c;
    }
}

void ferrule_fully_connected_octet_s8(const struct ferrule_fully_connected_octet_s8_params *params,
                                      const int8_t *input, int8_t *output)
{
    const bool plain = ferrule_is_plain(&params->output);

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
