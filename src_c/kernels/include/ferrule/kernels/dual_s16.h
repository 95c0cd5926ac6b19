/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D and DEPTHWISE_CONV_2D with int16 data, two pixels at a time. Any context; the
 * kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_DUAL_S16_H_INCLUDED
#define FERRULE_KERNELS_DUAL_S16_H_INCLUDED

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

/** @brief Return whether stored values must be clamped to limits that the assembler does not know.
 */
static inline bool ferrule_limits_s16(int32_t low, int32_t high)
{
    return (low != INT16_MIN && low != 0) || high != INT16_MAX;
}

/** @brief Clamp stored values to such limits; the others cost nothing. */
static inline void ferrule_clamp_s16(int16_t *elements, int32_t count, int32_t low, int32_t high)
{
    if (!ferrule_limits_s16(low, high)) {
        return;
    }
    for (int32_t i = 0; i < count; ++i) {
        elements[i] = (int16_t)ferrule_clamp(elements[i], low, high);
    }
}

enum { FERRULE_DUAL_CHANNELS = 4 /**< of a block */ };

/** How the sums of an output are kept and rounded. */
enum {
    FERRULE_DUAL_ONCE = 0,  /**< 32 bits; rounded once, by a multiplier that includes the shift */
    FERRULE_DUAL_TWICE = 1, /**< 31 bits; rounded twice, as with an int32 bias */
    FERRULE_DUAL_LONG = 2   /**< 64 bits, as ferrule_requantize_wide */
};

/** int16 with int8 weights, which the kernel `unpacked` has as 16 bits. */
struct ferrule_conv2d_dual_s16_params {
    struct ferrule_window window;
    struct ferrule_view view;
    /** ferrule_conv2d_dual_whole_s16 or another one of those below; null for FULLY_CONNECTED */
    void (*convolve)(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *input,
                     int16_t *output, int16_t *patches);
    /**
     * Per group and four channels: four biases, of 64 bits for long sums and for FULLY_CONNECTED.
     * Per two products the weights of channels 0 and 1, by turns, then of 2 and 3; unpacked, those
     * of each channel. Four multipliers. For sums that are rounded twice, what is added before the
     * shift, and right shifts of at least 1; for long sums, shifts that are negative to the right.
     * The last block has the last four channels, or zeros behind fewer.
     */
    const int32_t *stream;
    int32_t sums;     /**< FERRULE_DUAL_ONCE, FERRULE_DUAL_TWICE or FERRULE_DUAL_LONG */
    int32_t steps;    /**< products of a channel / 2, rounded up */
    int32_t words;    /**< of the stream of a group */
    int32_t output_c; /**< of a group */
    int32_t low;
    int32_t high;
};

/** Two pixels, and what the assembler needs. */
struct ferrule_dual_pair {
    const int32_t *stream;
    const int16_t *patches; /**< two products of the first pixel, then of the second one */
    int32_t steps;
    int16_t *first;
    int16_t *second;
    int32_t channels; /**< 4 or more */
    int32_t clipped;  /**< 1 if negative results become 0, otherwise 0 */
};

/** @brief Compute and store two pixels, which may be the same; the second one is stored first. */
void ferrule_dual_pair_s16(const struct ferrule_dual_pair *pair);
void ferrule_dual_pair_twice_s16(const struct ferrule_dual_pair *pair);
void ferrule_dual_pair_unpacked_s16(const struct ferrule_dual_pair *pair);

/** @brief Add up the sums of four channels for one pixel; return the address behind their weights.
 */
const int32_t *ferrule_dual_long_s16(const int32_t *stream, const int16_t *data, int64_t *sums,
                                     int32_t steps);
const int32_t *ferrule_dual_long_unpacked_s16(const int32_t *stream, const int16_t *data,
                                              int64_t *sums, int32_t steps);

/**
 * @brief Convolve.
 *
 * The windows of two consecutive pixels, with long sums of one, are read before they are written;
 * of several groups, one after the other. Scratch, aligned to 4: 8 * steps bytes, and 16 for fewer
 * than four channels; with long sums 4 * steps.
 */
void ferrule_conv2d_dual_s16(const struct ferrule_conv2d_dual_s16_params *params,
                             const int16_t *input, int16_t *output, void *scratch);
void ferrule_conv2d_unpacked_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                 const int16_t *input, int16_t *output, void *scratch);

/** @brief Compute a part of a layer without groups, or with them. */
void ferrule_conv2d_dual_whole_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                   const int16_t *input, int16_t *output, int16_t *patches);
void ferrule_conv2d_dual_groups_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                    const int16_t *input, int16_t *output, int16_t *patches);
void ferrule_conv2d_unpacked_whole_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                       const int16_t *input, int16_t *output, int16_t *patches);
void ferrule_conv2d_unpacked_groups_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                        const int16_t *input, int16_t *output, int16_t *patches);

/** @brief Multiply rows of an even number of elements, one per batch; sums are long, or of 32 bits
 * and rounded once. */
void ferrule_fully_connected_dual_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                      const int16_t *input, int16_t *output);
void ferrule_fully_connected_unpacked_s16(const struct ferrule_conv2d_dual_s16_params *params,
                                          const int16_t *input, int16_t *output);

enum { FERRULE_POINTS_MOST_STEPS = 8 };

/** int16 with int8 weights and an int64 bias: windows of one pixel over few channels, as of groups;
 * at least four channels of the output. */
struct ferrule_conv2d_points_s16_params {
    int32_t pixels;
    int32_t input_c;  /**< of a pixel */
    int32_t output_c; /**< of a pixel */
    int32_t blocks;
    /**
     * Per four channels: the first one of the input, the first one of the output, and the number of
     * steps of two products, 1 to FERRULE_POINTS_MOST_STEPS; four biases; per step two weights of
     * 16 bits of each channel; four multipliers that include the shift. Sums have 32 bits.
     */
    const int32_t *stream;
    int32_t low;
    int32_t high;
};

/** @brief Convolve four channels of all pixels, then the next; the input is read throughout. */
void ferrule_conv2d_points_s16(const struct ferrule_conv2d_points_s16_params *params,
                               const int16_t *input, int16_t *output);

/** int16 with int8 weights, an int64 bias and sums of 32 bits; at least two channels. */
struct ferrule_depthwise_conv2d_dual_s16_params {
    struct ferrule_window window;
    /**
     * Per two channels: their biases; the weights of two columns of the first, then of the second
     * one, by row, with zeros in place of a missing column; multipliers that include the shift.
     * The last pair has the last two channels.
     */
    const int32_t *stream;
    int32_t low;
    int32_t high;
};

/** Pairs of pixels with the same taps inside the image. */
struct ferrule_dual_depthwise {
    const int16_t *data;  /**< under the first tap of the first pixel */
    int32_t next_bytes;   /**< from the first pixel to the second one; 0 if there is none */
    int32_t column_bytes; /**< from a tap to that of the next column */
    int32_t row_bytes;    /**< from a tap to that of the next row */
    int32_t skipped;      /**< bytes of weights from the end of a row to the next one */
    const int32_t *stream;
    int16_t *output;
    int32_t output_next; /**< bytes from an output pixel to the second one; 0 if there is none */
    int32_t channels;
    int32_t rows;         /**< 0 or more */
    int32_t pairs;        /**< of columns, without those that `lead` and `tail` count */
    int32_t first_weight; /**< bytes from the biases to the weights of the first tap */
    int32_t scales;       /**< bytes from the biases to the multipliers */
    int32_t count;        /**< pairs of pixels, at least 1 */
    int32_t lead;         /**< 1 if the first column is the second one of its pair */
    int32_t tail;         /**< 1 if the last column is the first one of its pair */
    int32_t clipped;      /**< 1 if negative results become 0, otherwise 0 */
};

/** @brief Compute and store pairs of pixels. */
void ferrule_dual_depthwise_s16(const struct ferrule_dual_depthwise *run);

/**
 * @brief Convolve each channel with its own window, two neighbouring pixels of a row at a time
 * where both windows are inside the image.
 *
 * Two channels of both pixels are written before the next two are read. With an odd number of
 * channels, the last but one is read and written twice.
 */
void ferrule_depthwise_conv2d_dual_s16(
    const struct ferrule_depthwise_conv2d_dual_s16_params *params, const int16_t *input,
    int16_t *output);

/** The same with a channel multiplier: the channels of a strip of the image are repeated. */
struct ferrule_depthwise_conv2d_repeated_s16_params {
    struct ferrule_depthwise_conv2d_dual_s16_params whole; /**< of the repeated channels */
    int32_t depth_multiplier;
    int32_t rows; /**< of the output, computed from a strip */
};

/**
 * @brief Convolve each channel with `depth_multiplier` windows of its own; the input is read
 * throughout.
 *
 * Scratch, aligned to 4: the rows of the image under the windows of `rows` rows of the output, with
 * repeated channels.
 */
void ferrule_depthwise_conv2d_repeated_s16(
    const struct ferrule_depthwise_conv2d_repeated_s16_params *params, const int16_t *input,
    int16_t *output, void *scratch);

#endif
