/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_CONV2D_H_INCLUDED
#define FERRULE_KERNELS_CONV2D_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/block.h"
#include "ferrule/kernels/float_pixels.h"
#include "ferrule/kernels/paired_pixels.h"
#include "ferrule/kernels/window.h"

/** int8 with any weights and scales, and groups of channels. */
struct ferrule_conv2d_s8_params {
    struct ferrule_window window;
    int32_t output_c;       /**< of all groups */
    int32_t group_input_c;  /**< the window's input_c if there is one group */
    int32_t group_output_c; /**< output_c if there is one group */
    int32_t input_zero_point;
    int32_t weight_zero_point;
    const int8_t *weights;      /**< OHWI, with the channels of a group */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    struct ferrule_output_s8 output;
};

/** int8 with weights in pairs of channels. */
struct ferrule_conv2d_paired_s8_params {
    struct ferrule_window window;
    int32_t input_zero_point;
    const int16_t *inputs; /**< for a 1x1 window: the 4 * words input channels that have weights;
                              null means all */
    struct ferrule_paired_weights paired;
};

struct ferrule_conv2d_row;

/** int8 with weights in blocks of four channels. A model contains the functions that its tables
 * name. */
struct ferrule_conv2d_block_s8_params {
    struct ferrule_window window;
    struct ferrule_view view;
    int32_t first_c; /**< of the image, of the first group */
    int32_t input_zero_point;
    int32_t line_w;     /**< pixels of an input row with its padding, which is kept in scratch; 0 to
                           read windows from the image */
    int32_t line_c;     /**< from a pixel of such a row to the next one: the window's channels, or
                           those of all its rows, which then lie side by side */
    int32_t line_bytes; /**< from such a row to the next one */
    struct ferrule_block_rows rows; /**< of a window, in the lines or in the image */
    /** ferrule_conv2d_block_lines if there are lines, otherwise ferrule_conv2d_block_image. */
    void (*convolve)(struct ferrule_conv2d_row *row);
    /** Copies so many pixels of a row into a line: ferrule_conv2d_block_copy if they are neighbours
     * in both, otherwise ferrule_conv2d_block_copy_pixels; null without lines. */
    void (*copy)(const struct ferrule_conv2d_block_s8_params *params, int8_t *target,
                 const int8_t *source, int32_t count);
    struct ferrule_block block; /**< of the first group; the weights of the others follow, and
                                   positions count from the first output of each group */
};

/** A row of output pixels of a group, and what is left of the row before. */
struct ferrule_conv2d_row {
    const struct ferrule_conv2d_block_s8_params *params;
    struct ferrule_block block; /**< of the group */
    const int8_t *image;        /**< the group's first channel */
    int8_t *output;             /**< the first pixel */
    int32_t index;              /**< of the row */
    int8_t *waiting;            /**< a pixel that is gathered but not computed, or null */
    uint32_t *patches;
};

/** int8 with weights in blocks of four channels and a window of one pixel. */
struct ferrule_conv2d_1x1_block_s8_params {
    int32_t pixels;
    int32_t input_c;
    const int16_t *inputs; /**< the 4 * words input channels that have weights; null means all */
    struct ferrule_block block;
};

/** int16 with int8 weights. */
struct ferrule_conv2d_s16_params {
    struct ferrule_window window;
    int32_t output_c; /**< of all groups */
    int32_t group_input_c;
    int32_t group_output_c;
    const int8_t *weights;      /**< OHWI, with the channels of a group */
    const int64_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel, of 15 bits */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    int32_t low;
    int32_t high;
};

/** int16 with int8 weights, an int32 bias and accumulators of 32 bits. */
struct ferrule_conv2d_narrow_s16_params {
    struct ferrule_window window;
    int32_t output_c; /**< of all groups */
    int32_t group_input_c;
    int32_t group_output_c;
    const int8_t *weights;      /**< OHWI, with the channels of a group */
    const int32_t *bias;        /**< one per output channel */
    const int32_t *multipliers; /**< one per output channel */
    const int8_t *shifts;       /**< one per output channel, positive to the left */
    int32_t low;
    int32_t high;
};

/** float32, with groups of channels. */
struct ferrule_conv2d_f32_params {
    struct ferrule_window window;
    struct ferrule_view view;
    int32_t output_c;                                   /**< of a group */
    int32_t block;                                      /**< 1, 4 or 8 channels */
    void (*store)(struct ferrule_float_pixels *pixels); /**< ferrule_float_blocks_1 and so on */
    const float *weights; /**< for each group, the blocks of `ferrule/kernels/float_pixels.h`, the
                             products of a window in the order rows, columns, channels */
    const float *bias;    /**< one per output channel, for blocks of one channel; otherwise null */
    float low;
    float high;
};

/** @brief Convolve; no scratch. */
void ferrule_conv2d_s16(const struct ferrule_conv2d_s16_params *params, const int16_t *input,
                        int16_t *output);
void ferrule_conv2d_narrow_s16(const struct ferrule_conv2d_narrow_s16_params *params,
                               const int16_t *input, int16_t *output);
void ferrule_conv2d_f32(const struct ferrule_conv2d_f32_params *params, const float *input,
                        float *output);
void ferrule_conv2d_s8(const struct ferrule_conv2d_s8_params *params, const int8_t *input,
                       int8_t *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_conv2d_single_s8(const struct ferrule_conv2d_s8_params *params, const int8_t *input,
                              int8_t *output);
void ferrule_conv2d_onnx_s8(const struct ferrule_conv2d_s8_params *params, const int8_t *input,
                            int8_t *output);

/**
 * @brief Convolve two pixels and two channels at a time.
 *
 * Scratch: 16 * words bytes, and 4 * words more unless input_c is a multiple of 4; aligned to 4.
 */
void ferrule_conv2d_paired_s8(const struct ferrule_conv2d_paired_s8_params *params,
                              const int8_t *input, int8_t *output, void *scratch);

/**
 * @brief Convolve with a window of one pixel, stride 1 and no padding.
 *
 * input_c is a multiple of 4 unless `inputs` lists the channels.
 */
void ferrule_conv2d_1x1_paired_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                  const int8_t *input, int8_t *output, void *scratch);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_conv2d_paired_single_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                     const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_paired_onnx_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                   const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_1x1_paired_single_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                         const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_1x1_paired_onnx_s8(const struct ferrule_conv2d_paired_s8_params *params,
                                       const int8_t *input, int8_t *output, void *scratch);

/**
 * @brief Convolve two pixels and four channels at a time, for the DSP extension.
 *
 * Scratch: 16 * words + kernel_h * line_w * input_c bytes, and 4 more with lines; aligned to 4.
 * Without lines, input_c is a multiple of 4. With several groups, all groups of a row of output
 * pixels are computed before those of the next row.
 */
void ferrule_conv2d_block_s8(const struct ferrule_conv2d_block_s8_params *params,
                             const int8_t *input, int8_t *output, void *scratch);

/** @brief Compute a row of output pixels from lines, or from the image, for `convolve`. */
void ferrule_conv2d_block_lines(struct ferrule_conv2d_row *row);
void ferrule_conv2d_block_image(struct ferrule_conv2d_row *row);

/** @brief Copy so many pixels, for `copy`. */
void ferrule_conv2d_block_copy(const struct ferrule_conv2d_block_s8_params *params, int8_t *target,
                               const int8_t *source, int32_t count);
void ferrule_conv2d_block_copy_pixels(const struct ferrule_conv2d_block_s8_params *params,
                                      int8_t *target, const int8_t *source, int32_t count);

/**
 * @brief Convolve with a window of one pixel, stride 1 and no padding, for the DSP extension.
 *
 * Scratch: 16 * words bytes aligned to 4. input_c is a multiple of 4 unless `inputs` lists the
 * channels.
 */
void ferrule_conv2d_1x1_block_s8(const struct ferrule_conv2d_1x1_block_s8_params *params,
                                 const int8_t *input, int8_t *output, void *scratch);

#endif
