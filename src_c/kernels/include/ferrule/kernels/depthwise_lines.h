/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D of int8 with a window of 3x3, line by line, for cores with the DSP
 * extension. Any context; the kernels keep no state between calls.
 *
 * The window slides along steps, line by line: steps are columns and lines are rows, or vice versa.
 * A dilated window slides over parts of the image, see depthwise_parts.h.
 * Four live channels at a time: scratch holds three lines of each of them, widened to 16 bits, two
 * pixels per word; the words of the three lines for the same step are adjacent. A new line replaces
 * the oldest, so the order of the lines in scratch rotates, and the weights rotate with it.
 *
 * The output may replace the input where lines are read before they are written, since a channel's
 * output depends on no other channel of the input.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_LINES_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_LINES_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/depthwise_parts.h"
#include "ferrule/kernels/requantize_dsp.h"

enum {
    FERRULE_DEPTHWISE_LINES = 3,
    FERRULE_DEPTHWISE_TURNS = 15 /**< words of weights of a channel in all rotations, at most */
};

struct ferrule_depthwise_lines_params {
    int32_t batches;
    int32_t input_c;
    int32_t output_c;
    struct ferrule_axis lines;
    struct ferrule_axis steps; /**< in a part, the window begins at most 2 pixels outside */
    int32_t words; /**< of a line of a part, two pixels each: outputs / 2 + 1, rounded up, for steps
                      of 1; outputs + 1 for steps of 2 */
    int32_t input_zero_point;
    int32_t live_c;        /**< output channels that have weights */
    const int16_t *inputs; /**< input channel of each of them; null if `places` are */
    const int16_t *places; /**< place of each of them in an output pixel; null for all in order */
    struct ferrule_dead dead; /**< the other output channels */
    const int32_t *weights;   /**< per live channel, one word per line of the window: bytes w0, w1,
                                 w1, w2 */
    const int32_t *
        scales; /**< per live channel as in the proved form of requantize_dsp.h, but with the
                   highest bit of the multiplier set where sums are multiplied by 128, not by 256 */
};

/** A live channel of the four in scratch. */
struct ferrule_depthwise_channel {
    const uint32_t *words; /**< its lines */
    int32_t offset_bytes;  /**< of the channel in a pixel */
    int32_t bias;
    int32_t bias_again;  /**< the assembler loads two accumulators at once */
    const uint32_t *end; /**< the words after the last whole step of a line */
    int32_t multiplier;
    uint32_t weights[FERRULE_DEPTHWISE_TURNS];
    int32_t rounding; /**< for the exact form, as is the next one */
    int32_t right;
};

/** @brief Return 256 times the bytes 0 and 2 of a word of weights, as two 16-bit numbers. */
static inline uint32_t ferrule_depthwise_even(uint32_t weights)
{
    return (weights << 8) & 0xff00ff00u;
}

/** @brief Return 256 times the bytes 1 and 3 of a word of weights, as two 16-bit numbers. */
static inline uint32_t ferrule_depthwise_odd(uint32_t weights)
{
    return weights & 0xff00ff00u;
}

/** One line of the output. */
struct ferrule_depthwise_line {
    const struct ferrule_depthwise_channel *channels;
    const struct ferrule_depthwise_channel *end;
    int8_t *output;
    int32_t oldest; /**< the place of the first line of the window in scratch */
    int32_t steps;
    int32_t step_bytes;
};

/** The two parts of a kernel that depend on the window's stride along the steps. */
struct ferrule_depthwise_way {
    int32_t words;   /**< of the weights of a channel in all rotations */
    int32_t outputs; /**< of a step along the line */
    /** Expand three words of weights to those of all rotations. */
    void (*turn)(const int32_t *weights, uint32_t *turned);
    void (*store_line)(const struct ferrule_depthwise_line *line);
    bool is_exact; /**< whether the scales are in the exact form of requantize_dsp.h */
};

/** @brief Run a kernel; scratch: 48 * words bytes aligned to 4. */
void ferrule_depthwise_lines(const struct ferrule_depthwise_lines_params *params,
                             const int8_t *input, int8_t *output, uint32_t *scratch,
                             const struct ferrule_depthwise_way *way);

/** @brief Convolve each channel on its own, in steps of 1; scratch as above. */
void ferrule_depthwise_conv2d_3x3_by1_s8(const struct ferrule_depthwise_lines_params *params,
                                         const int8_t *input, int8_t *output, void *scratch);

/** @brief The same with scales in the exact form. */
void ferrule_depthwise_conv2d_3x3_by1_exact_s8(const struct ferrule_depthwise_lines_params *params,
                                               const int8_t *input, int8_t *output, void *scratch);

/** @brief Convolve each channel on its own, in steps of 2; scratch as above. */
void ferrule_depthwise_conv2d_3x3_by2_s8(const struct ferrule_depthwise_lines_params *params,
                                         const int8_t *input, int8_t *output, void *scratch);

/** @brief The same with scales in the exact form. */
void ferrule_depthwise_conv2d_3x3_by2_exact_s8(const struct ferrule_depthwise_lines_params *params,
                                               const int8_t *input, int8_t *output, void *scratch);

#endif
