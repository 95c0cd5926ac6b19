/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file BATCH_MATMUL. Any context; the kernels keep no state between calls.
 *
 * The output may not share memory with the inputs.
 */
#ifndef FERRULE_KERNELS_BATCH_MATMUL_H_INCLUDED
#define FERRULE_KERNELS_BATCH_MATMUL_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/block.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/store_sums.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FERRULE_BATCH_MATMUL_AXES = 3 };

/** The elements of an input from one index to the next. */
struct ferrule_batch_matmul_strides {
    int32_t batches[FERRULE_BATCH_MATMUL_AXES]; /**< 0 where the input is broadcast */
    int32_t line;                               /**< from a row, or a column, to the next */
    int32_t depth;                              /**< along a sum */
};

struct ferrule_batch_matmul_shape {
    int32_t batches[FERRULE_BATCH_MATMUL_AXES];
    int32_t rows;
    int32_t columns;
    int32_t depth;
    struct ferrule_batch_matmul_strides left;
    struct ferrule_batch_matmul_strides right;
};

/** int8 and int16; the multiplier of int16 has 15 bits, and its zero points are 0. */
struct ferrule_batch_matmul_int_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t left_zero_point;
    int32_t right_zero_point;
    int32_t multiplier;
    int32_t shift;
    int32_t output_zero_point;
};

/** float32. */
struct ferrule_batch_matmul_f32_params {
    struct ferrule_batch_matmul_shape shape;
};

/** @brief Multiply matrices; sums must fit into 32 bits (s8) or 47 bits (s16). No scratch. */
void ferrule_batch_matmul_s8(const struct ferrule_batch_matmul_int_params *params,
                             const int8_t *left, const int8_t *right, int8_t *output);
void ferrule_batch_matmul_s16(const struct ferrule_batch_matmul_int_params *params,
                              const int16_t *left, const int16_t *right, int16_t *output);
void ferrule_batch_matmul_f32(const struct ferrule_batch_matmul_f32_params *params,
                              const float *left, const float *right, float *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_batch_matmul_single_s8(const struct ferrule_batch_matmul_int_params *params,
                                    const int8_t *left, const int8_t *right, int8_t *output);
void ferrule_batch_matmul_onnx_s8(const struct ferrule_batch_matmul_int_params *params,
                                  const int8_t *left, const int8_t *right, int8_t *output);

/**
 * int8 with the right matrices packed at run time, some columns at a time.
 *
 * Left and right may be exchanged, so that the rows of the left matrix are packed: then the output
 * is written across its rows.
 */
struct ferrule_batch_matmul_tile_s8_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t row_step;    /**< of the output: shape.columns, or 1 if left and right are exchanged */
    int32_t column_step; /**< 1, or shape.rows */
    int32_t left_zero_point;
    int32_t right_zero_point;
    const int32_t *bias;  /**< of each column, in units of the products; null means none */
    int32_t tile_columns; /**< packed at once; a multiple of the columns of a block */
    int32_t words;        /**< shape.depth / 4, rounded up */
    /** One of the functions for tiles of `ferrule/kernels/block.h`; null for other kernels. */
    ferrule_block_store multiply;
    int32_t left_shift;   /**< of packed weights */
    int32_t start;        /**< of the shifted sums */
    int32_t constants[3]; /**< that follow the weights of each block */
    int32_t constant_words;
    ferrule_store_sums_of *store; /**< of sums; null if `multiply` stores int8 */
    int32_t scale[4];             /**< as for ferrule_store_sums(); the first one is 0 */
    struct ferrule_output_s8 output;
};

/**
 * @brief Multiply two rows and four columns at a time, for the DSP extension.
 *
 * Scratch, aligned to 4: 16 * words bytes; 8 bytes per column of a tile if there is a `store`; and
 * per four columns of a tile 32 * words + 16 + 4 * constant_words. Without a `store`, there are at
 * least four columns, and column_step is 1.
 */
void ferrule_batch_matmul_block_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                   const int8_t *left, const int8_t *right, int8_t *output,
                                   void *scratch);

/**
 * @brief Multiply a row and eight columns at a time, on any core; column_step is 1.
 *
 * Scratch, aligned to 4: 4 + depth bytes per column of a tile, and `depth` more if the elements of
 * a left row are not adjacent. There is a `store`.
 */
void ferrule_batch_matmul_octet_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                   const int8_t *left, const int8_t *right, int8_t *output,
                                   void *scratch);

/**
 * @brief Multiply one row at a time by columns that are not packed, for the DSP extension.
 *
 * Scratch, aligned to 4: 8 * words bytes. There is a `store`; column_step is 1.
 */
void ferrule_batch_matmul_direct_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                    const int8_t *left, const int8_t *right, int8_t *output,
                                    void *scratch);

/** int16 with the right matrices packed at run time, some columns at a time. */
struct ferrule_batch_matmul_tile_s16_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t tile_columns; /**< packed at once; a multiple of four */
    int32_t multiplier;   /**< by which a sum is multiplied, */
    int32_t right;        /**< then shifted to the right by 32 plus this, at least 1 */
};

/**
 * @brief Multiply a row and four columns at a time, for the DSP extension or with MVE.
 *
 * Sums have 64 bits; the upper 32 of a sum times the multiplier, which is not negative, are less
 * than 2^31 - 1. Scratch, aligned to 4: per column of a tile 2 * depth bytes, with depth rounded up
 * to a multiple of 8; and 2 * depth + 2 if the elements of a left row are not adjacent, or if depth
 * is odd.
 */
void ferrule_batch_matmul_block_s16(const struct ferrule_batch_matmul_tile_s16_params *params,
                                    const int16_t *left, const int16_t *right, int16_t *output,
                                    void *scratch);

/** float32 with the right matrices packed at run time, some columns at a time. */
struct ferrule_batch_matmul_tile_f32_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t tile_columns; /**< packed at once; a multiple of `block` */
    int32_t block;        /**< columns that are packed together, 4 or 8 */
};

/**
 * @brief Multiply two rows and a block of columns at a time, for cores with an FPU.
 *
 * The bits are those of `ferrule_batch_matmul_f32`. Scratch, aligned to 4: 4 * depth + 4 bytes per
 * column of a tile.
 */
void ferrule_batch_matmul_block_f32(const struct ferrule_batch_matmul_tile_f32_params *params,
                                    const float *left, const float *right, float *output,
                                    void *scratch);

/** @brief Return the bytes that exist of four, `step` apart, in a word; the others are `missing`.
 */
static inline uint32_t ferrule_load_some(const int8_t *data, int32_t step, int32_t count,
                                         uint32_t missing)
{
    uint32_t word = missing;

    for (int32_t i = 0; i < 4 && i < count; ++i) {
        uint32_t place = 8u * (uint32_t)i;

        word = (word & ~((uint32_t)0xff << place)) | ((uint32_t)(uint8_t)data[i * step] << place);
    }
    return word;
}

/**
 * @brief Call `multiply` with the parameters, the operands, the output and the scratch memory of
 * each matrix of the output.
 *
 * A macro, since the types of elements and parameters are those of a kernel.
 */
#define FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply)                  \
    do {                                                                                           \
        const struct ferrule_batch_matmul_shape *shape = &(params)->shape;                         \
        const int32_t *at_left = shape->left.batches;                                              \
        const int32_t *at_right = shape->right.batches;                                            \
                                                                                                   \
        for (int32_t i = 0; i < shape->batches[0]; ++i) {                                          \
            for (int32_t j = 0; j < shape->batches[1]; ++j) {                                      \
                for (int32_t k = 0; k < shape->batches[2]; ++k) {                                  \
                    multiply(params, (left) + i * at_left[0] + j * at_left[1] + k * at_left[2],    \
                             (right) + i * at_right[0] + j * at_right[1] + k * at_right[2],        \
                             output, scratch);                                                     \
                    (output) += shape->rows * shape->columns;                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
