/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/softmax.h"
#include "ferrule/kernels/softmax_row.h"

void ferrule_softmax_s8_s16(const struct ferrule_softmax_s8_params *params, const int8_t *input,
                            int16_t *output)
{
    const int32_t rows = params->rows;
    const int32_t depth = params->depth;
#if !FERRULE_HAS_MVE
    const int32_t *exponentials = params->exponentials;
#endif

    for (int32_t r = 0; r < rows; ++r) {
        const struct ferrule_softmax_row row = ferrule_softmax_row(params, input, 16);

#if FERRULE_HAS_MVE
        const int8_t *from = input;
        int16_t *to = output;

        FERRULE_SOFTMAX_STORE("vstrh.32 q0, [%[target]], #8\n\t", &row, params, from, to,
                              INT16_MIN);
#else
        for (int32_t i = 0; i < depth; ++i) {
            int32_t exponential = ferrule_softmax_exponential(exponentials, row.offset, input[i]);

            output[i] = (int16_t)ferrule_saturate_s16(ferrule_softmax_element(&row, exponential) +
                                                      INT16_MIN);
        }
#endif
        input += depth;
        output += depth;
    }
}
