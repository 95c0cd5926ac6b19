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

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_fully_connected_paired_single_s8(
    const struct ferrule_fully_connected_paired_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);
void ferrule_fully_connected_paired_onnx_s8(
    const struct ferrule_fully_connected_paired_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

/** The products of a piece of a sum, in groups of eight; a power of two. */
#define FERRULE_PIECE_PAIRS 64

/** One row of the input. */
struct ferrule_block_row {
    const void *data; /**< widened words, or bytes for the direct functions */
    int32_t pairs;    /**< of groups of four products, at least 1 */
};

/** One of the functions below. */
typedef void (*ferrule_block_row_multiply)(const struct ferrule_block_row *row,
                                           const int32_t *weights, const int32_t *end,
                                           int8_t *output);

/** int8 with weights in blocks of four channels, as in `ferrule/kernels/block.h`. */
struct ferrule_fully_connected_block_s8_params {
    int32_t rows;     /**< of the input and of the output */
    int32_t input_c;  /**< elements of an input row */
    int32_t output_c; /**< elements of an output row */
    int32_t words;    /**< products per output / 4, rounded up to a multiple of 2 */
    const int32_t *weights;
    int32_t block_words; /**< of a block's weights and constants */
    int32_t rest_words;  /**< of the last channels, if they do not fill a block */
    ferrule_block_row_multiply multiply;
    ferrule_block_row_multiply multiply_rest; /**< for two channels if there are at most two,
                                                 otherwise the same as `multiply` */
};

/**
 * @brief Compute and store whole blocks.
 *
 * The constants have the proved or the exact form; the row is widened, or read directly.
 */
void ferrule_block_row_proved(const struct ferrule_block_row *row, const int32_t *weights,
                              const int32_t *end, int8_t *output);
void ferrule_block_row_exact(const struct ferrule_block_row *row, const int32_t *weights,
                             const int32_t *end, int8_t *output);
void ferrule_block_row_direct_proved(const struct ferrule_block_row *row, const int32_t *weights,
                                     const int32_t *end, int8_t *output);
void ferrule_block_row_direct_exact(const struct ferrule_block_row *row, const int32_t *weights,
                                    const int32_t *end, int8_t *output);

/**
 * @brief The same in the exact form if sums may be too large for packed channels.
 *
 * They are added in pieces of 8 * FERRULE_PIECE_PAIRS products, which fit for any weights that can
 * be packed; the first piece may be shorter.
 */
void ferrule_block_row_pieces(const struct ferrule_block_row *row, const int32_t *weights,
                              const int32_t *end, int8_t *output);
void ferrule_block_row_direct_pieces(const struct ferrule_block_row *row, const int32_t *weights,
                                     const int32_t *end, int8_t *output);

/** @brief The same for a block of two channels. */
void ferrule_block_row_pair_proved(const struct ferrule_block_row *row, const int32_t *weights,
                                   const int32_t *end, int8_t *output);
void ferrule_block_row_pair_exact(const struct ferrule_block_row *row, const int32_t *weights,
                                  const int32_t *end, int8_t *output);
void ferrule_block_row_pair_pieces(const struct ferrule_block_row *row, const int32_t *weights,
                                   const int32_t *end, int8_t *output);
void ferrule_block_row_pair_direct_proved(const struct ferrule_block_row *row,
                                          const int32_t *weights, const int32_t *end,
                                          int8_t *output);
void ferrule_block_row_pair_direct_exact(const struct ferrule_block_row *row,
                                         const int32_t *weights, const int32_t *end,
                                         int8_t *output);
void ferrule_block_row_pair_direct_pieces(const struct ferrule_block_row *row,
                                          const int32_t *weights, const int32_t *end,
                                          int8_t *output);

/**
 * @brief Compute whole blocks, and store twice the sums.
 *
 * The row is widened. Of each two channels, the second one is the even channel of the packed form.
 * Before the weights, a block has for each two channels the sum 256 * a + b of their biases, then
 * b; the sum of the first channel is below 2^23.
 */
void ferrule_block_row_sums(const struct ferrule_block_row *row, const int32_t *weights,
                            const int32_t *end, int32_t *sums);

/** @brief The same with weights of 16 bits: a block has the biases, then for each word of the row a
 * word of each channel. */
void ferrule_block_row_wide_sums(const struct ferrule_block_row *row, const int32_t *weights,
                                 const int32_t *end, int32_t *sums);

/** @brief Widen a row to whole groups of four products; reads no byte beyond the row. */
void ferrule_widen_row(const int8_t *row, int32_t bytes, uint32_t *target);

/**
 * @brief Multiply with four channels at a time, for the DSP extension.
 *
 * Scratch: 8 * words bytes aligned to 4.
 */
void ferrule_fully_connected_block_s8(const struct ferrule_fully_connected_block_s8_params *params,
                                      const int8_t *input, int8_t *output, void *scratch);

/** @brief Multiply without scratch; input_c is 4 * words. */
void ferrule_fully_connected_direct_block_s8(
    const struct ferrule_fully_connected_block_s8_params *params, const int8_t *input,
    int8_t *output);

#endif
