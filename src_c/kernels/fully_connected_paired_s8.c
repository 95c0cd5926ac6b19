/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/fully_connected.h"

/* The last bytes are widened on their own, so that nothing beyond the row is read. */
static void widen_row(const int8_t *row, int32_t bytes, uint32_t *target)
{
    int32_t words = bytes / 4;
    int8_t rest[4] = {0, 0, 0, 0};

    ferrule_widen(row, words, target, 2);
    if (bytes % 4 != 0) {
        for (int32_t i = 0; i < bytes % 4; ++i) {
            rest[i] = row[4 * words + i];
        }
        ferrule_widen(rest, 1, target + 2 * words, 2);
    }
}

static void multiply_row(const struct ferrule_fully_connected_paired_s8_params *params,
                         const uint32_t *row, int8_t *output)
{
    const int32_t *weights = params->weights;
    const int32_t *channel = params->channels;
    const uint32_t *row_end = row + 2 * params->words;

    for (int32_t c = 0; c < params->output_c; c += 4) {
        uint32_t both01 = 0;
        uint32_t both23 = 0;
        uint32_t sum0 = 0;
        uint32_t sum2 = 0;

        for (const uint32_t *x = row; x != row_end; x += 2) {
            uint32_t w01 = (uint32_t)weights[0];
            uint32_t w23 = (uint32_t)weights[1];

            both01 = ferrule_dual_multiply_add(x[0], w01, both01);
            both23 = ferrule_dual_multiply_add(x[0], w23, both23);
            sum0 = ferrule_dual_multiply_add(x[0], ferrule_even_bytes(w01), sum0);
            sum2 = ferrule_dual_multiply_add(x[0], ferrule_even_bytes(w23), sum2);
            w01 = (uint32_t)weights[2];
            w23 = (uint32_t)weights[3];
            both01 = ferrule_dual_multiply_add(x[1], w01, both01);
            both23 = ferrule_dual_multiply_add(x[1], w23, both23);
            sum0 = ferrule_dual_multiply_add(x[1], ferrule_even_bytes(w01), sum0);
            sum2 = ferrule_dual_multiply_add(x[1], ferrule_even_bytes(w23), sum2);
            weights += 4;
        }

        uint32_t sums[4] = {sum0, (uint32_t)((int32_t)(both01 - sum0) >> 8), sum2,
                            (uint32_t)((int32_t)(both23 - sum2) >> 8)};
        for (int32_t i = 0; i < 4 && c + i < params->output_c; ++i) {
            *output++ = ferrule_store_s8(sums[i], channel, &params->output);
            channel += FERRULE_CHANNEL_WORDS;
        }
    }
}

void ferrule_fully_connected_paired_s8(
    const struct ferrule_fully_connected_paired_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        widen_row(input, params->input_c, scratch);
        multiply_row(params, scratch, output);
        input += params->input_c;
        output += params->output_c;
    }
}
