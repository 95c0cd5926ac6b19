/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Blocks of four output channels of two pixels, for the DSP extension.
 *
 * Weights are packed as in `ferrule/kernels/paired.h`. They are ordered by blocks of four channels,
 * and each block has 4 * words words of weights. The constants of its channels are in one of the
 * forms of `ferrule/kernels/requantize_dsp.h`. In the proved form, the biases of channels 1 and 3
 * precede the weights; multiplier and bias of channel 0, the multiplier of channel 1, and the same
 * of channels 2 and 3 follow them. In the exact form, the words of each channel follow.
 */
#ifndef FERRULE_KERNELS_BLOCK_H_INCLUDED
#define FERRULE_KERNELS_BLOCK_H_INCLUDED

#include <stdint.h>

/** The words of a piece of a sum; a power of two. */
#define FERRULE_BLOCK_PIECE 128

/** The rows of a window, which lie at equal distances in memory; or several lines of such rows. */
struct ferrule_block_rows {
    int32_t count;      /**< of a line */
    int32_t words;      /**< whole words of a row */
    int32_t rest;       /**< bytes after these words; -1 for several lines, whose rows have none */
    int32_t step_bytes; /**< from the end of a row's words to the next row */
    /** ferrule_block_gather(), or ferrule_block_gather_lines() for several lines: a model without
     * such rows does not contain it. */
    void (*gather)(const struct ferrule_block_rows *rows, const int8_t *source, int32_t offset,
                   uint32_t *patches);
    int32_t lines;
    int32_t line_step_bytes; /**< from a step behind a line's last row to the next line */
};

/** The pixels of one call. */
struct ferrule_block_pixels {
    int8_t *first;
    int8_t *second;       /**< the same as `first` for a single pixel; then only one is computed */
    const int8_t *source; /**< the windows of neighbouring pixels, to be widened into the patches;
                             null if the patches are complete */
    int32_t step_bytes;   /**< from the window of a pixel to that of the next one; 0 for a single
                             pixel */
    int32_t pairs;        /**< 1 unless there is a source; the second pixel of a pair lies output_c
                             bytes behind the first one */
    const struct ferrule_block_rows *rows; /**< of a window, to be widened as by
                                              ferrule_block_gather(); null if there is one row, of
                                              all words */
};

struct ferrule_block;

/** One of the functions below. */
typedef void (*ferrule_block_store)(const struct ferrule_block *block,
                                    const struct ferrule_block_pixels *pixels, uint32_t *patches);

/** A layer's weights. */
struct ferrule_block {
    const int32_t *weights;
    int32_t weight_bytes; /**< including the channels' constants */
    int32_t words;        /**< products per output / 4, rounded up */
    int32_t output_c;
    const int16_t *positions; /**< output channel of each channel that has weights, in whole blocks,
                                 the last one repeated; null if all have and they fill blocks */
    const int8_t *fixed; /**< one output pixel, used for the channels that have no weights; null if
                            there are none */
    ferrule_block_store store;
};

/**
 * @brief Compute and store all channels of the pixels; patches has 16 * words bytes.
 *
 * The constants have the proved or the exact form. The channels are listed, or all of them have
 * weights and fill whole blocks.
 */
void ferrule_block_proved(const struct ferrule_block *block,
                          const struct ferrule_block_pixels *pixels, uint32_t *patches);
void ferrule_block_proved_listed(const struct ferrule_block *block,
                                 const struct ferrule_block_pixels *pixels, uint32_t *patches);
void ferrule_block_exact(const struct ferrule_block *block,
                         const struct ferrule_block_pixels *pixels, uint32_t *patches);
void ferrule_block_exact_listed(const struct ferrule_block *block,
                                const struct ferrule_block_pixels *pixels, uint32_t *patches);

/**
 * @brief The same in the exact form if sums may be too large for packed channels.
 *
 * They are added in pieces of FERRULE_BLOCK_PIECE words, which fit for any weights that can be
 * packed; the first piece may be shorter.
 */
void ferrule_block_pieces(const struct ferrule_block *block,
                          const struct ferrule_block_pixels *pixels, uint32_t *patches);
void ferrule_block_pieces_listed(const struct ferrule_block *block,
                                 const struct ferrule_block_pixels *pixels, uint32_t *patches);

/**
 * @brief The same with weights of 16 bits, times 256, for at most 8 words.
 *
 * A block has the biases of its channels, for each word two times four words of weights, one per
 * channel, and the multipliers. The channels are not listed.
 */
void ferrule_block_wide(const struct ferrule_block *block,
                        const struct ferrule_block_pixels *pixels, uint32_t *patches);

/**
 * @brief The same for any number of words, with weights that were packed at run time.
 *
 * A block has four biases, which the sums start with; for each word two times four words of
 * weights, one per channel; and the constants that all its channels share: the multiplier of the
 * proved form, or multiplier, right shift and rounding of the exact form, whose sums are times 2.
 * The pixels have `output_c` channels, of which the block has any number. The channels are not
 * listed.
 */
void ferrule_block_tile_proved(const struct ferrule_block *block,
                               const struct ferrule_block_pixels *pixels, uint32_t *patches);
void ferrule_block_tile_exact(const struct ferrule_block *block,
                              const struct ferrule_block_pixels *pixels, uint32_t *patches);
/**
 * @brief Store the sums of one pair of pixels instead: `first` points to an int32_t for each
 * channel of the first pixel, then of the second, block by block. There are no constants.
 */
void ferrule_block_tile_sums(const struct ferrule_block *block,
                             const struct ferrule_block_pixels *pixels, uint32_t *patches);

/**
 * @brief Widen the windows of two pixels into patches.
 *
 * The words of all rows come first, then the rest of all rows, without gaps: of each four bytes of
 * the rest, 0 and 1 form one word, 2 and 3 the next. The second pixel's bytes lie at `offset` from
 * the first's. No byte outside the rows is read.
 */
void ferrule_block_gather(const struct ferrule_block_rows *rows, const int8_t *source,
                          int32_t offset, uint32_t *patches);

/** @brief The same for several lines of rows of whole words. */
void ferrule_block_gather_lines(const struct ferrule_block_rows *rows, const int8_t *source,
                                int32_t offset, uint32_t *patches);

#endif
