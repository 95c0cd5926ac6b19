/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Sums of a row of int8 times a matrix, by the loops of FULLY_CONNECTED: with the DSP
 * extension, with vector instructions (MVE), and for other cores. Those of int16 have the DSP
 * extension or MVE. Internal to the kernels.
 */
#ifndef FERRULE_KERNELS_ROW_MATRIX_H_INCLUDED
#define FERRULE_KERNELS_ROW_MATRIX_H_INCLUDED

#include <stdint.h>
#include <string.h>

#include "ferrule/kernels/fully_connected.h"
#include "ferrule/kernels/fully_connected_mve.h"
#include "ferrule/kernels/multiply.h"

/** A matrix in blocks of channels: of four with the DSP extension, of eight otherwise. */
struct ferrule_row_matrix {
    /** By block the biases, which include the contribution of the data's zero point, and the
     * weights, as ferrule_block_row_sums() and ferrule_mve_row_sums() have them, or as
     * ferrule_multiply_octet() has the weights. */
    const int32_t *stream;
    int32_t block_words; /**< of a block */
    int32_t groups; /**< of products: of 8 with the DSP extension, of 16 bytes of data with MVE,
                       else of 1 */
    /** For the DSP extension ferrule_block_row_sums() or ferrule_block_row_wide_sums(). */
    void (*multiply)(const struct ferrule_block_row *row, const int32_t *weights,
                     const int32_t *end, int32_t *sums);
};

/** Channels of a block, by engine. */
enum { FERRULE_BLOCK_CHANNELS = 4, FERRULE_OCTET_CHANNELS = 8, FERRULE_VECTOR_CHANNELS = 8 };

/** @brief Return the bytes that a row's copy takes. */
static inline int32_t ferrule_block_row_bytes(const struct ferrule_row_matrix *matrix,
                                              int32_t count)
{
    (void)count;
    return 16 * matrix->groups;
}
static inline int32_t ferrule_octet_row_bytes(const struct ferrule_row_matrix *matrix,
                                              int32_t count)
{
    (void)matrix;
    (void)count;
    return 0;
}
static inline int32_t ferrule_vector_row_bytes(const struct ferrule_row_matrix *matrix,
                                               int32_t count)
{
    const int32_t bytes = FERRULE_MVE_BYTES * matrix->groups;

    return bytes == count ? 0 : bytes;
}

/** @brief Return the row as the functions below read it; products that fill up the last group have
 * no weights. */
static inline const void *ferrule_block_prepared(const struct ferrule_row_matrix *matrix,
                                                 const int8_t *row, int32_t count, void *copy)
{
    (void)matrix;
    ferrule_widen_row(row, count, (uint32_t *)copy);
    return copy;
}
static inline const void *ferrule_octet_prepared(const struct ferrule_row_matrix *matrix,
                                                 const int8_t *row, int32_t count, void *copy)
{
    (void)matrix;
    (void)count;
    (void)copy;
    return row;
}
static inline const void *ferrule_vector_prepared(const struct ferrule_row_matrix *matrix,
                                                  const int8_t *row, int32_t count, void *copy)
{
    if (ferrule_vector_row_bytes(matrix, count) == 0) {
        return row;
    }
    ferrule_mve_copy((int8_t *)copy, row, count);
    return copy;
}

/** @brief Compute blocks from `stream` on and return its end. The sums are doubled, but not those
 * of ferrule_vector_sums(), which of eight channels has the even ones first. */
static inline const int32_t *ferrule_block_sums(const struct ferrule_row_matrix *matrix,
                                                const void *row, const int32_t *stream,
                                                int32_t blocks, int32_t *sums)
{
    const struct ferrule_block_row widened = {row, matrix->groups};
    const int32_t *end = stream + blocks * matrix->block_words;

    matrix->multiply(&widened, stream, end, sums);
    return end;
}
static inline const int32_t *ferrule_octet_sums(const struct ferrule_row_matrix *matrix,
                                                const void *row, const int32_t *stream,
                                                int32_t blocks, int32_t *sums)
{
    for (int32_t b = 0; b < blocks; ++b) {
        ferrule_multiply_octet((const int8_t *)row, (const int8_t *)&stream[FERRULE_OCTET],
                               matrix->groups, sums);
        for (int32_t i = 0; i < FERRULE_OCTET; ++i) {
            sums[i] = 2 * (sums[i] + stream[i]);
        }
        stream += matrix->block_words;
        sums += FERRULE_OCTET;
    }
    return stream;
}
static inline const int32_t *ferrule_vector_sums(const struct ferrule_row_matrix *matrix,
                                                 const void *row, const int32_t *stream,
                                                 int32_t blocks, int32_t *sums)
{
    const struct ferrule_mve_row vectors = {(const int8_t *)row, matrix->groups};
    const int32_t *end = stream + blocks * matrix->block_words;

    ferrule_mve_row_sums(&vectors, stream, end, sums);
    return end;
}

/** @brief The same for rows of int16, whose copy has zeros behind the last product. */
static inline int32_t ferrule_block_s16_row_bytes(const struct ferrule_row_matrix *matrix,
                                                  int32_t count)
{
    return ferrule_block_row_bytes(matrix, count);
}
static inline int32_t ferrule_vector_s16_row_bytes(const struct ferrule_row_matrix *matrix,
                                                   int32_t count)
{
    return ferrule_vector_row_bytes(matrix, 2 * count);
}
static inline const void *ferrule_block_s16_prepared(const struct ferrule_row_matrix *matrix,
                                                     const int16_t *row, int32_t count, void *copy)
{
    const size_t bytes = (size_t)count * sizeof *row;

    (void)memcpy(copy, row, bytes);
    (void)memset((int8_t *)copy + bytes, 0, 16 * (size_t)matrix->groups - bytes);
    return copy;
}
static inline const void *ferrule_vector_s16_prepared(const struct ferrule_row_matrix *matrix,
                                                      const int16_t *row, int32_t count, void *copy)
{
    return ferrule_vector_prepared(matrix, (const int8_t *)row, 2 * count, copy);
}
static inline const int32_t *ferrule_block_s16_sums(const struct ferrule_row_matrix *matrix,
                                                    const void *row, const int32_t *stream,
                                                    int32_t blocks, int32_t *sums)
{
    return ferrule_block_sums(matrix, row, stream, blocks, sums);
}
static inline const int32_t *ferrule_vector_s16_sums(const struct ferrule_row_matrix *matrix,
                                                     const void *row, const int32_t *stream,
                                                     int32_t blocks, int32_t *sums)
{
    const struct ferrule_mve_row vectors = {(const int8_t *)row, matrix->groups};
    const int32_t *end = stream + blocks * matrix->block_words;

    ferrule_mve_row_sums_s16(&vectors, stream, end, sums);
    return end;
}

/** @brief Double the sums of ferrule_vector_sums() and put them into the order of the channels. */
static inline void ferrule_vector_order(int32_t *sums, int32_t count)
{
    for (int32_t i = 0; i < count; i += FERRULE_VECTOR_CHANNELS) {
        int32_t block[FERRULE_VECTOR_CHANNELS];

        for (int32_t c = 0; c < FERRULE_VECTOR_CHANNELS; ++c) {
            block[c] = 2 * sums[i + c / 2 + FERRULE_MVE_LANES * (c % 2)];
        }
        for (int32_t c = 0; c < FERRULE_VECTOR_CHANNELS; ++c) {
            sums[i + c] = block[c];
        }
    }
}

#endif
