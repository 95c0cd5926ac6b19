/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Two int8 inputs of different shapes as blocks of adjacent elements, so that a kernel has
 * one loop for all broadcasts; internal to the kernels.
 *
 * An input with all elements of the output is read in place, and never after an element of the same
 * index is written. Elements of other inputs are repeated in a buffer.
 */
#ifndef FERRULE_KERNELS_BLOCKS_H_INCLUDED
#define FERRULE_KERNELS_BLOCKS_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/broadcast.h"

#define FERRULE_BLOCK_BYTES 128 /* of the buffer, which two inputs share */

/** One input of the blocks. */
struct ferrule_block_input {
    const int8_t *start;
    const int32_t *strides;
    bool whole;    /**< has all elements of the output */
    bool repeated; /**< has the same elements in each block */
    int8_t *buffer;
    const int8_t *elements; /**< of the block */
};

/** The blocks of an output. */
struct ferrule_blocks {
    const struct ferrule_broadcast *shape;
    struct ferrule_broadcast_row row;
    int32_t column;  /**< of the next block in its row */
    int32_t left;    /**< elements of the output that follow the block */
    int32_t most;    /**< elements of a block */
    bool short_rows; /**< blocks have whole rows */
    struct ferrule_block_input first;
    struct ferrule_block_input second;
    int32_t count; /**< of elements of the block */
    int8_t buffer[FERRULE_BLOCK_BYTES];
};

/** @brief Set out to walk; there is no block before ferrule_blocks_next() returns true. */
void ferrule_blocks_begin(struct ferrule_blocks *blocks, const struct ferrule_broadcast *shape,
                          const int8_t *first, const int8_t *second);

/** @brief Move on to the next block; return false after the last. */
bool ferrule_blocks_next(struct ferrule_blocks *blocks);

#endif
