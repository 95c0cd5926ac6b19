/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of FULLY_CONNECTED with weights in pairs of channels, for each rule of rounding. A
 * kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_s8 does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/fully_connected.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

/* The last bytes are widened separately, so that no byte beyond the row is read. */
static void widen_row(const int8_t *row, int32_t bytes, uint32_t *target)
{
    int32_t words = bytes / 4;

    ferrule_widen(row, words, target, 2);
    if (bytes % 4 != 0) {
        int8_t rest[4] = {0, 0, 0, 0};

        for (int32_t i = 0; i < bytes % 4; ++i) {
            rest[i] = row[4 * words + i];
        }
        ferrule_widen(rest, 1, target + 2 * words, 2);
    }
}

/* Sums of four channels. */
struct sums {
    struct ferrule_pair_sums channels01;
    struct ferrule_pair_sums channels23;
};

static inline struct sums multiply(const uint32_t *row, const int32_t *weights, int32_t words)
{
    struct sums sums = {{0, 0}, {0, 0}};
    const uint32_t *end = row + 2 * words;

#if FERRULE_HAS_DSP
    /* The loop below, with pairs of words loaded at once and no register spilled. */
    uint32_t x0;
    uint32_t x1;
    uint32_t w01;
    uint32_t w23;
    __asm__(
        "1:\n\t"
        "ldrd %[x0], %[x1], [%[row]], #8\n\t"
        "ldrd %[w01], %[w23], [%[weights]], #8\n\t"
        "smlad %[both01], %[x0], %[w01], %[both01]\n\t"
        "smlad %[both23], %[x0], %[w23], %[both23]\n\t"
        "sxtb16 %[w01], %[w01]\n\t"
        "sxtb16 %[w23], %[w23]\n\t"
        "smlad %[sum0], %[x0], %[w01], %[sum0]\n\t"
        "smlad %[sum2], %[x0], %[w23], %[sum2]\n\t"
        "ldrd %[w01], %[w23], [%[weights]], #8\n\t"
        "smlad %[both01], %[x1], %[w01], %[both01]\n\t"
        "smlad %[both23], %[x1], %[w23], %[both23]\n\t"
        "sxtb16 %[w01], %[w01]\n\t"
        "sxtb16 %[w23], %[w23]\n\t"
        "smlad %[sum0], %[x1], %[w01], %[sum0]\n\t"
        "smlad %[sum2], %[x1], %[w23], %[sum2]\n\t"
        "cmp %[row], %[end]\n\t"
        "bne 1b\n\t"
        : [both01] "+r"(sums.channels01.both), [both23] "+r"(sums.channels23.both),
          [sum0] "+r"(sums.channels01.a), [sum2] "+r"(sums.channels23.a), [weights] "+r"(weights),
          [row] "+r"(row), [x0] "=&r"(x0), [x1] "=&r"(x1), [w01] "=&r"(w01), [w23] "=&r"(w23)
        : [end] "r"(end)
        : "cc", "memory");
#else
    do {
        ferrule_add_pair(&sums.channels01, *row, (uint32_t)weights[0]);
        ferrule_add_pair(&sums.channels23, *row, (uint32_t)weights[1]);
        row += 1;
        weights += 2;
    } while (row != end);
#endif
    return sums;
}

static inline void multiply_row(const struct ferrule_fully_connected_paired_s8_params *params,
                                const uint32_t *row, int8_t *output, bool plain)
{
    const int32_t *weights = params->weights;
    const int32_t *channel = params->channels;
    const struct ferrule_output_s8 common = params->output;
    int32_t odd = 2 * common.zero_point + 1;

    for (int32_t c = 0; c < params->output_c; c += 4) {
        struct sums sums = multiply(row, weights, params->words);
        uint32_t twice[4] = {
            2u * sums.channels01.a, ferrule_twice_b(sums.channels01.both, sums.channels01.a),
            2u * sums.channels23.a, ferrule_twice_b(sums.channels23.both, sums.channels23.a)};

        for (int32_t i = 0; i < 4 && c + i < params->output_c; ++i) {
            struct ferrule_scale scale = ferrule_scale_of(channel, odd);

            *output++ = FERRULE_STORE(twice[i], &scale, &common, plain);
            channel += FERRULE_CHANNEL_WORDS;
        }
        weights += 4 * params->words;
    }
}

void FERRULE_KERNEL(const struct ferrule_fully_connected_paired_s8_params *params,
                    const int8_t *input, int8_t *output, void *scratch)
{
    bool plain = FERRULE_IS_PLAIN(&params->output);

    for (int32_t r = 0; r < params->rows; ++r) {
        widen_row(input, params->input_c, scratch);
        if (plain) {
            multiply_row(params, scratch, output, true);
        } else {
            multiply_row(params, scratch, output, false);
        }
        input += params->input_c;
        output += params->output_c;
    }
}
