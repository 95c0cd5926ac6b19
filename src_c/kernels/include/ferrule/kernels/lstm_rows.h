/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file LSTM of int8 and int16 by the loops that multiply a row by a matrix. Any context; the
 * kernels keep no state between calls, and states lie as `ferrule/kernels/lstm.h` permits.
 *
 * The units are divided into tiles. For a tile, the sums of its gates over the input go to scratch,
 * then those over the hidden state, then the gates' functions are computed, then the cells.
 */
#ifndef FERRULE_KERNELS_LSTM_ROWS_H_INCLUDED
#define FERRULE_KERNELS_LSTM_ROWS_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/lstm.h"
#include "ferrule/kernels/row_matrix.h"

struct ferrule_lstm_rows_params {
    struct ferrule_lstm_shape shape;
    int32_t tile; /**< units of a tile, a multiple of 8; the last tile may have less */
    struct ferrule_row_matrix input; /**< by tile the units of each gate, filled up to a multiple */
    struct ferrule_row_matrix recurrent;
    /** Sums times 2^(1 + their shift to the left) are below 2^31; the factors of the cell and the
     * hidden state have shifts to the right, those of the cell the multiplier 2^30. Sums of int16
     * are rounded once: their multipliers include the shift, which is 0. */
    struct ferrule_lstm_scaling scaling;
};

/**
 * @brief For the DSP extension.
 *
 * Scratch, aligned to 4: 16 * groups bytes of each matrix, 32 * tile.
 */
void ferrule_lstm_block_s8(const struct ferrule_lstm_rows_params *params, const int8_t *input,
                           const int8_t *hidden, const int16_t *cell, int8_t *output,
                           int8_t *next_hidden, int16_t *next_cell, void *scratch);

void ferrule_lstm_block_s16(const struct ferrule_lstm_rows_params *params, const int16_t *input,
                            const int16_t *hidden, const int16_t *cell, int16_t *output,
                            int16_t *next_hidden, int16_t *next_cell, void *scratch);

/** @brief For other cores; the units of a tile are filled up to an even number. Scratch, aligned to
 * 4: 32 * tile bytes. */
void ferrule_lstm_octet_s8(const struct ferrule_lstm_rows_params *params, const int8_t *input,
                           const int8_t *hidden, const int16_t *cell, int8_t *output,
                           int8_t *next_hidden, int16_t *next_cell, void *scratch);

/**
 * @brief With vector instructions (MVE); the units of a tile are filled up to a multiple of 8.
 *
 * Scratch, aligned to 4: 40 * tile bytes, and 16 * groups of each matrix whose rows are not whole
 * vectors.
 */
void ferrule_lstm_mve_s8(const struct ferrule_lstm_rows_params *params, const int8_t *input,
                         const int8_t *hidden, const int16_t *cell, int8_t *output,
                         int8_t *next_hidden, int16_t *next_cell, void *scratch);
void ferrule_lstm_mve_s16(const struct ferrule_lstm_rows_params *params, const int16_t *input,
                          const int16_t *hidden, const int16_t *cell, int16_t *output,
                          int16_t *next_hidden, int16_t *next_cell, void *scratch);

#endif
