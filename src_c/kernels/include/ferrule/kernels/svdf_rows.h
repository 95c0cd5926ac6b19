/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file SVDF of int8 by the loops that multiply a row by a matrix. Any context; the kernels keep no
 * state between calls, and states lie as `ferrule/kernels/svdf.h` permits.
 *
 * The units are divided into tiles. For a tile, the sums of its filters over the features go to
 * scratch, then the filters' frames move by one and are summed.
 */
#ifndef FERRULE_KERNELS_SVDF_ROWS_H_INCLUDED
#define FERRULE_KERNELS_SVDF_ROWS_H_INCLUDED

#include "ferrule/kernels/row_matrix.h"
#include "ferrule/kernels/svdf.h"

struct ferrule_svdf_rows_params {
    struct ferrule_svdf_shape shape;
    int32_t tile; /**< units of a tile, a multiple of 8; the last tile may have less */
    struct ferrule_row_matrix feature; /**< by tile its filters, filled up to whole blocks */
    const void *time_weights;          /**< [units * rank][memory], of the state's type */
    const int32_t *bias;      /**< by unit, minus the state's zero point times weights over time */
    int32_t state_multiplier; /**< with shift: from sums over features to the state; sums times
                                 2^(1 + a shift to the left) are below 2^31 */
    int32_t state_shift;
    int32_t state_zero_point;
    int32_t output_multiplier; /**< with shift: from sums over time to the output */
    int32_t output_shift;
    int32_t output_zero_point;
    int32_t small_sums; /**< whether sums over time are below 2^30 and `output_shift` below 0 */
};

/**
 * @brief With a state of int8, or of int16; sums over time wrap at 32 bits.
 *
 * For the DSP extension, for other cores, and with vector instructions (MVE). Scratch, aligned to
 * 4: 4 bytes of each filter of a tile, filled up to whole blocks, 6 with MVE; 16 * groups for the
 * DSP extension, with MVE only if the features are not whole vectors.
 */
void ferrule_svdf_block_s8(const struct ferrule_svdf_rows_params *params, const int8_t *input,
                           const int8_t *state, int8_t *output, int8_t *next, void *scratch);
void ferrule_svdf_block_s16_state(const struct ferrule_svdf_rows_params *params,
                                  const int8_t *input, const int16_t *state, int8_t *output,
                                  int16_t *next, void *scratch);
void ferrule_svdf_octet_s8(const struct ferrule_svdf_rows_params *params, const int8_t *input,
                           const int8_t *state, int8_t *output, int8_t *next, void *scratch);
void ferrule_svdf_octet_s16_state(const struct ferrule_svdf_rows_params *params,
                                  const int8_t *input, const int16_t *state, int8_t *output,
                                  int16_t *next, void *scratch);
void ferrule_svdf_mve_s8(const struct ferrule_svdf_rows_params *params, const int8_t *input,
                         const int8_t *state, int8_t *output, int8_t *next, void *scratch);
void ferrule_svdf_mve_s16_state(const struct ferrule_svdf_rows_params *params, const int8_t *input,
                                const int16_t *state, int8_t *output, int16_t *next, void *scratch);

#endif
