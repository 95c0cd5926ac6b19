/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file FULLY_CONNECTED. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_FULLY_CONNECTED_H_INCLUDED
#define FERRULE_KERNELS_FULLY_CONNECTED_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/paired.h"

/** int8 with weights in pairs of channels. */
struct ferrule_fully_connected_paired_s8_params {
    int32_t rows;            /**< of the input and of the output */
    int32_t input_c;         /**< elements of an input row */
    int32_t output_c;        /**< elements of an output row */
    int32_t words;           /**< input_c / 4, rounded up */
    const int32_t *weights;  /**< per four channels 4 * words words: two weight pairs of one channel
                                  pair, then of the other */
    const int32_t *channels; /**< FERRULE_CHANNEL_WORDS per output channel, rounded up to four */
    struct ferrule_output_s8 output;
};

/** @brief Multiply; scratch: 8 * words bytes aligned to 4. */
void ferrule_fully_connected_paired_s8(
    const struct ferrule_fully_connected_paired_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

#endif
