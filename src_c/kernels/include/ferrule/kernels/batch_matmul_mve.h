/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file BATCH_MATMUL with vector instructions (MVE). Any context; the kernel keeps no state.
 *
 * The output may not share memory with the inputs.
 */
#ifndef FERRULE_KERNELS_BATCH_MATMUL_MVE_H_INCLUDED
#define FERRULE_KERNELS_BATCH_MATMUL_MVE_H_INCLUDED

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/mve_pixels.h"

/** As `struct ferrule_batch_matmul_tile_s8_params`. */
struct ferrule_batch_matmul_mve_s8_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t row_step;
    int32_t column_step; /**< times the number of columns at most 65536 */
    int32_t left_zero_point;
    int32_t right_zero_point;
    const int32_t *bias;     /**< of each column, in units of the products; null means none */
    const int32_t *row_bias; /**< the same of each row */
    int32_t tile_columns;    /**< packed at once; a multiple of four */
    int32_t vectors;         /**< shape.depth / 16, rounded up */
    int32_t rows;            /**< of the left matrix, multiplied at once; a multiple of four */
    int32_t kind;            /**< as in struct ferrule_mve_weights; listed unless shape.columns is a
                                multiple of four and column_step is 1 */
    int32_t multiplier;
    int32_t shift; /**< negative to the right */
    struct ferrule_output_s8 output;
};

/**
 * @brief Multiply two rows and four columns at a time; registers hold columns of 16 bytes for all
 * rows, if the limits are those of int8.
 *
 * Scratch, aligned to 4: per four columns of a tile 64 * vectors + 36 bytes, 44 if they are listed;
 * 4 * (rows + 1) bytes; and unless rows are 16 * vectors adjacent bytes, rows * depth + 15.
 */
void ferrule_batch_matmul_mve_s8(const struct ferrule_batch_matmul_mve_s8_params *params,
                                 const int8_t *left, const int8_t *right, int8_t *output,
                                 void *scratch);

#endif
