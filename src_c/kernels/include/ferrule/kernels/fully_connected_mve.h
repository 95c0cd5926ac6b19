/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file FULLY_CONNECTED with vector instructions (MVE). Any context; the kernel keeps no state.
 */
#ifndef FERRULE_KERNELS_FULLY_CONNECTED_MVE_H_INCLUDED
#define FERRULE_KERNELS_FULLY_CONNECTED_MVE_H_INCLUDED

#include "ferrule/kernels/mve.h"

/** int8, eight channels at a time. */
struct ferrule_fully_connected_mve_s8_params {
    /**
     * Per eight channels, in the order 0, 2, 4, 6, 1, 3, 5, 7: biases (with the contribution of the
     * input's zero point); per 16 products the weights of each channel, 16 bytes; multipliers;
     * shifts as bytes, negative to the right. Up to four last channels are a block of eight, too,
     * but it has only the weights of channels 0, 2, 1, 3.
     */
    const int32_t *stream;
    int32_t first;      /**< vectors of the first pass, 1 to 4; other passes have 4 */
    int32_t data_bytes; /**< 16 * vectors */
    int32_t output_c;
    int32_t general; /**< 0 if the output is as ferrule_is_plain requires, otherwise 1 */
    struct ferrule_output_s8 output;
    int32_t input_c;
    int32_t rows; /**< of the input and of the output */
};

/** @brief Multiply one row of data_bytes. */
void ferrule_mve_multiply_row(const struct ferrule_fully_connected_mve_s8_params *params,
                              const int8_t *row, int8_t *output);

/** A row of whole vectors, at least one. */
struct ferrule_mve_row {
    const int8_t *data;
    int32_t vectors;
};

/**
 * @brief Compute and store the sums of whole blocks.
 *
 * A block has eight biases, and per 16 products the weights of each channel, 16 bytes.
 */
void ferrule_mve_row_sums(const struct ferrule_mve_row *row, const int32_t *stream,
                          const int32_t *end, int32_t *sums);

/** @brief The same for a row of int16: per 8 products the weights of each channel, 8 bytes. */
void ferrule_mve_row_sums_s16(const struct ferrule_mve_row *row, const int32_t *stream,
                              const int32_t *end, int32_t *sums);

/** @brief Multiply rows of data_bytes; they are read while the output is written. */
void ferrule_fully_connected_mve_s8(const struct ferrule_fully_connected_mve_s8_params *params,
                                    const int8_t *input, int8_t *output);

/** @brief Multiply rows of any size; scratch: data_bytes, aligned to 4. */
void ferrule_fully_connected_copied_mve_s8(
    const struct ferrule_fully_connected_mve_s8_params *params, const int8_t *input, int8_t *output,
    void *scratch);

#endif
