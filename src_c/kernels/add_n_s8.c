/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/add_n.h"
#include "ferrule/kernels/sum.h"

#define FRACTION_BITS 19

void ferrule_add_n_first_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                            void *sums)
{
    int16_t *sum = (int16_t *)sums;

    /* the reference's sum starts with minus the zero point */
    for (int32_t i = 0; i < params->elements; ++i) {
        sum[i] = (int16_t)(input[i] - 2 * params->zero_point);
    }
}

void ferrule_add_n_next_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                           void *sums)
{
    int16_t *sum = (int16_t *)sums;

    for (int32_t i = 0; i < params->elements; ++i) {
        sum[i] = (int16_t)(sum[i] + input[i] - params->zero_point);
    }
}

void ferrule_add_n_last_s8(const struct ferrule_add_n_s8_params *params, const int8_t *input,
                           const void *sums, int8_t *output)
{
    const int16_t *sum = (const int16_t *)sums;
    const struct ferrule_result result = params->result;

    for (int32_t i = 0; i < params->elements; ++i) {
        int32_t total = sum[i] + input[i] - params->zero_point;

        output[i] = (int8_t)ferrule_result(&result, total * ((int32_t)1 << FRACTION_BITS));
    }
}
