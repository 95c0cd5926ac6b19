/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D with a window of 3x3 on cores without the DSP extension.
 */
#ifndef FERRULE_KERNELS_COLUMNS_H_INCLUDED
#define FERRULE_KERNELS_COLUMNS_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/multiply.h"

/** The lines under the window: a column has one value of each. */
enum { FERRULE_LINES = 3 };

/**
 * @brief Compute `outputs` sums of a channel, an even number, with a window that moves by one
 * column
 * (`by1`) or by two (`by2`).
 *
 * Of each column, `weights` has a byte for each of the three lines. `columns` has outputs + 2
 * columns, or 2 * outputs + 1.
 */
void ferrule_multiply_columns_by1(const int32_t *columns, const int8_t *weights, int32_t outputs,
                                  int32_t *sums);
void ferrule_multiply_columns_by2(const int32_t *columns, const int8_t *weights, int32_t outputs,
                                  int32_t *sums);

/**
 * @brief Store the values of `count` sums of a channel, `step_bytes` apart; `plain` is for outputs
 * with ferrule_is_plain(). `count` is positive.
 */
void ferrule_store_sums_plain(const int32_t *sums, int32_t count, const int32_t *scale,
                              int8_t *output, int32_t step_bytes);
void ferrule_store_sums(const int32_t *sums, int32_t count, const int32_t *scale, int8_t *output,
                        int32_t step_bytes, int32_t low, int32_t high);

/** @brief The same by the rules SINGLE and ONNX; `plain` is for outputs with
 * ferrule_is_whole_s8(). */
void ferrule_store_sums_plain_single(const int32_t *sums, int32_t count, const int32_t *scale,
                                     int8_t *output, int32_t step_bytes);
void ferrule_store_sums_single(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes, int32_t low, int32_t high);
void ferrule_store_sums_plain_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                                   int8_t *output, int32_t step_bytes);
void ferrule_store_sums_onnx(const int32_t *sums, int32_t count, const int32_t *scale,
                             int8_t *output, int32_t step_bytes, int32_t low, int32_t high);

/**
 * int8; the window slides along steps, line by line: steps are columns of the image and lines are
 * rows, or vice versa. Strides between elements are in bytes.
 */
struct ferrule_depthwise_conv2d_columns_s8_params {
    int32_t batches;
    int32_t channels;
    int32_t input_lines;
    int32_t input_steps;
    int32_t input_line_bytes;
    int32_t input_step_bytes;
    int32_t output_lines;
    int32_t output_steps;
    int32_t output_line_bytes;
    int32_t output_step_bytes;
    int32_t line_stride; /**< of the window, positive */
    int32_t step_stride; /**< of the window, 1 or 2 */
    int32_t pad_lines;   /**< before the first */
    int32_t pad_steps;   /**< before the first */
    int32_t columns;     /**< that the functions above read for all steps of a line */
    int32_t input_zero_point;
    int32_t live_c;      /**< channels that have weights */
    const int8_t *fixed; /**< one output pixel, used for the channels that are not live; null if all
                            are live */
    const int8_t *weights; /**< nine per live channel, step by step */
    const int32_t *scales; /**< FERRULE_PLAIN_SCALE_WORDS per live channel */
    struct ferrule_output_s8 output;
};

/** @brief Convolve each channel on its own; scratch: 12 * columns bytes, and 4 for each step of the
 * output, rounded up to two. Any context. */
void ferrule_depthwise_conv2d_columns_s8(
    const struct ferrule_depthwise_conv2d_columns_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);
void ferrule_depthwise_conv2d_columns_single_s8(
    const struct ferrule_depthwise_conv2d_columns_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);
void ferrule_depthwise_conv2d_columns_onnx_s8(
    const struct ferrule_depthwise_conv2d_columns_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

#endif
