/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D of int8 with any window, stride, dilation and depth multiplier. Any
 * context; the kernel keeps no state between calls.
 *
 * The window slides along steps, line by line: steps are columns of the image and lines are rows,
 * or vice versa. A dilated window falls into images of their own: all pixels whose indices are
 * equal modulo the dilation ("parts").
 *
 * Scratch holds the lines of a few channels as words, in which the window slides by one word from
 * sum to sum: one pixel per word, or two neighbouring ones for the DSP extension. With a stride of
 * `spread` pixels between words, the words that begin at pixel `start` of each stride form a row;
 * a line has a row for each start that weights need. Where two words are one pixel apart from two
 * outputs, as with pairs and a stride of 1, even and odd outputs are two passes over the same
 * words.
 *
 * A pass has a stream of records: the place of the first word under the window, relative to that of
 * the sum, and three or two words of weights.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_WINDOW_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_WINDOW_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/depthwise_parts.h"
#include "ferrule/kernels/store_sums.h"

enum {
    FERRULE_WINDOW_SUMS = 4,   /**< that are computed together */
    FERRULE_WINDOW_HEADER = 6, /**< words of a stream before its records */
    FERRULE_WINDOW_ROWS = 8    /**< the most rows of a line */
};

/** Sums of `blocks` times FERRULE_WINDOW_SUMS neighbouring words, a positive number. */
typedef void ferrule_window_multiply(const uint32_t *data, const int32_t *stream, int32_t blocks,
                                     int32_t *sums);
/** Records of three words of weights, then of two, which are shifted to the left; the highest bit
 * of the place marks the last one of a kind. */
typedef void ferrule_window_expand(const int16_t *plan, int32_t threes, int32_t twos,
                                   const int8_t *weights, int32_t shift, int32_t *stream);
/** Words of a row, in each of the lines. */
typedef void ferrule_window_widen(const int8_t *source, const struct ferrule_window_run *run,
                                  const struct ferrule_window_group *group,
                                  const struct ferrule_window_lines *lines, uint32_t *target);

struct ferrule_depthwise_conv2d_window_s8_params {
    /* first what the innermost loops need, since Armv6-M has short offsets */
    ferrule_window_multiply *multiply;
    ferrule_store_sums_of *store;
    ferrule_window_widen *widen;
    ferrule_window_expand *expand;
    struct ferrule_output_s8 output;
    int32_t window_lines;
    int32_t rows; /**< of a line */
    int32_t row_words;
    int32_t capacity; /**< lines of each channel in scratch */
    int32_t group;    /**< channels at a time: 4 for pairs, or 1 */
    int32_t input_zero_point;
    int32_t passes;        /**< 1 or 2 */
    int32_t spread;        /**< pixels between neighbouring words */
    int32_t taps;          /**< of a channel */
    int32_t stream_words;  /**< of all passes of a channel */
    const int16_t *starts; /**< of each row */
    const int16_t *plan; /**< per pass: the number of records of three words, that of records of two
                            words, then per record the place of its first word, and for each word
                            the indices of its weights, one or two; `taps` stands for none */
    const int8_t *weights; /**< per live channel `taps` weights, line by line, and a zero */
    int32_t scale_words;   /**< FERRULE_PROVED_WORDS or FERRULE_PLAIN_SCALE_WORDS */
    const int32_t *scales; /**< per live channel, as for `store` */
    int32_t live_c;        /**< output channels that have weights */
    const int16_t *inputs; /**< input channel of each of them; null if `places` are */
    const int16_t *places; /**< place of each of them in an output pixel; null for all in order */
    struct ferrule_dead dead; /**< the other output channels */
    int32_t batches;
    int32_t input_c;
    int32_t output_c;
    struct ferrule_axis lines;
    struct ferrule_axis steps;
};

/** @brief Convolve each channel on its own; scratch, aligned to 4: the lines of a group, its
 * streams, and a word for each sum of a line, rounded up to FERRULE_WINDOW_SUMS. */
void ferrule_depthwise_conv2d_window_s8(
    const struct ferrule_depthwise_conv2d_window_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

/** @brief Words of two pixels, of four channels at a time. */
void ferrule_expand_pairs(const int16_t *plan, int32_t threes, int32_t twos, const int8_t *weights,
                          int32_t shift, int32_t *stream);
void ferrule_widen_pairs(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group,
                         const struct ferrule_window_lines *lines, uint32_t *target);
void ferrule_multiply_pairs(const uint32_t *data, const int32_t *stream, int32_t blocks,
                            int32_t *sums);

/** @brief Words of one pixel, of one channel at a time. */
void ferrule_expand_words(const int16_t *plan, int32_t threes, int32_t twos, const int8_t *weights,
                          int32_t shift, int32_t *stream);
void ferrule_widen_words(const int8_t *source, const struct ferrule_window_run *run,
                         const struct ferrule_window_group *group,
                         const struct ferrule_window_lines *lines, uint32_t *target);
void ferrule_multiply_words(const uint32_t *data, const int32_t *stream, int32_t blocks,
                            int32_t *sums);
/** @brief The same with two words between neighbouring sums. */
void ferrule_multiply_words_by2(const uint32_t *data, const int32_t *stream, int32_t blocks,
                                int32_t *sums);

#endif
