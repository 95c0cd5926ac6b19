/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file DEPTHWISE_CONV_2D with vector instructions (MVE). Any context; the kernels keep no state.
 */
#ifndef FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_H_INCLUDED
#define FERRULE_KERNELS_DEPTHWISE_CONV2D_MVE_H_INCLUDED

#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/window.h"

enum {
    FERRULE_MVE_TAPS = 9, /**< of a window whose addresses are in registers */
    FERRULE_MVE_ROWS = 9  /**< of any window */
};

struct ferrule_mve_depthwise;

/** int8 with a window of up to FERRULE_MVE_ROWS rows. */
struct ferrule_depthwise_conv2d_mve_s8_params {
    struct ferrule_window window;
    int32_t input_zero_point;
    /**
     * Per 16 channels: biases (with the contribution of the input's zero point), in the order 0, 4,
     * 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15; the weights of each tap, 16 bytes;
     * multipliers and shifts as bytes, negative to the right, in the order of the biases. There are
     * FERRULE_MVE_TAPS taps, or an even number above; missing ones have the weight 0. The two
     * weights of taps 2 * i and 2 * i + 1 sum to at most 255 in magnitude.
     */
    const int32_t *stream;
    int32_t together; /**< neighbouring pixels of a step, if the stride is 1 and the stream repeats
                         the channels so often; otherwise 1 */
    void (*compute)(struct ferrule_mve_depthwise *run); /**< for steps of so many pixels */
    void (*single)(struct ferrule_mve_depthwise *run);  /**< for steps of one pixel */
    struct ferrule_output_s8 output;
};

/** Pixels of a row whose windows are inside the image, or one pixel. */
struct ferrule_mve_depthwise {
    const int8_t *taps[FERRULE_MVE_TAPS]; /**< of the first pixel */
    const int32_t *stream;
    int8_t *output;
    int32_t tap_step; /**< from the taps of a step to the next ones, less the lanes in whole vectors
                       */
    int32_t lanes;    /**< bytes of a step */
    int32_t count;    /**< steps, at least 1 */
    int32_t zero_point;
    int32_t low;
    int32_t high;
    int32_t output_step; /**< lanes, less the lanes in whole vectors */
    const int8_t **list; /**< more than FERRULE_MVE_TAPS taps, in place of `taps` */
    int32_t pairs;       /**< of taps in the list */
};

/**
 * @brief Compute steps whose lanes are a multiple of 4: `plain` for outputs as ferrule_is_plain
 * requires, `listed` with taps from a list.
 */
void ferrule_mve_depthwise_plain(struct ferrule_mve_depthwise *run);
void ferrule_mve_depthwise_general(struct ferrule_mve_depthwise *run);
void ferrule_mve_depthwise_listed(struct ferrule_mve_depthwise *run);

/** @brief The same for any lanes. */
void ferrule_mve_depthwise_any_plain(struct ferrule_mve_depthwise *run);
void ferrule_mve_depthwise_any_general(struct ferrule_mve_depthwise *run);
void ferrule_mve_depthwise_any_listed(struct ferrule_mve_depthwise *run);

/**
 * @brief Convolve each channel on its own, pixel by pixel in order.
 *
 * The channels of a window are read before the same channels of its pixel are written. Scratch:
 * input_c bytes; for more than FERRULE_MVE_TAPS taps pointers to an even number of them before.
 */
void ferrule_depthwise_conv2d_mve_s8(const struct ferrule_depthwise_conv2d_mve_s8_params *params,
                                     const int8_t *input, int8_t *output, void *scratch);

struct ferrule_mve_plane;

/** One axis of an image: across the lines of a plane, or along a line. */
struct ferrule_mve_axis {
    int32_t input;  /**< pixels of the image */
    int32_t output; /**< pixels of the output */
    int32_t taps;   /**< of a window */
    int32_t stride;
    int32_t dilation; /**< 1 unless the stride is 1 */
    int32_t pad;
    int32_t input_step;  /**< bytes from a pixel of the image to the next one */
    int32_t output_step; /**< the same of the output */
};

/** int8 with a window of up to 64 pixels, and any channels. */
struct ferrule_depthwise_conv2d_planes_mve_s8_params {
    struct ferrule_mve_axis across;
    struct ferrule_mve_axis along; /**< its steps times the dilation are below 2^13 */
    int32_t batches;
    int32_t input_c;
    int32_t multiplier; /**< output channels of an input channel */
    int32_t input_zero_point;
    const int8_t *weights; /**< by output channel: for each tap along a line, those across */
    const int32_t *scales; /**< by output channel: bias (with the contribution of the input's zero
                              point), multiplier, shift, negative to the right */
    void (*compute)(struct ferrule_mve_plane *plane); /**< for the vectors of a window's weights */
    struct ferrule_output_s8 output;
};

/**
 * Lines of one channel: first some are copied to scratch, the pixels `taps across` bytes apart,
 * each line one byte behind the one before. So every window is one run of bytes, and a new line
 * replaces the one that no window needs any more.
 */
struct ferrule_mve_plane {
    const int8_t *source;  /**< the next line to be copied */
    int8_t *target;        /**< its place */
    const int8_t *windows; /**< the first window of the next line of the output */
    int8_t *output;
    int32_t lines;       /**< of the output; 0: only copy */
    int32_t copies;      /**< lines copied before each of these */
    int32_t source_line; /**< bytes to the next line */
    int32_t before;      /**< pixels outside the image in front of the line */
    int32_t count;       /**< pixels inside the image */
    int32_t after;       /**< pixels outside the image behind them */
    int32_t source_step; /**< bytes to the next pixel */
    int32_t target_step;
    int32_t window_step; /**< to the next window of the line */
    int32_t window_line; /**< to the windows of the next line */
    int32_t output_count;
    int32_t output_step;
    int32_t output_line;
    const int8_t *weights;
    int32_t last_weights; /**< bytes of the last vector of weights: 1 to 16 */
    int32_t input_zero_point;
    int32_t bias;
    int32_t multiplier;
    int32_t shift;
    struct ferrule_output_s8 limits;
};

/** @brief Copy and compute lines with weights of 1 to 4 vectors; `plain` as ferrule_is_plain. */
void ferrule_mve_plane_plain_1(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_plain_2(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_plain_3(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_plain_4(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_general_1(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_general_2(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_general_3(struct ferrule_mve_plane *plane);
void ferrule_mve_plane_general_4(struct ferrule_mve_plane *plane);

/**
 * @brief Convolve each channel on its own, one after the other.
 *
 * Scratch, in pixels of the padded image without dilation: (pixels of a line + 7 * stride along) *
 * taps across + lines + 16 * vectors.
 */
void ferrule_depthwise_conv2d_planes_mve_s8(
    const struct ferrule_depthwise_conv2d_planes_mve_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch);

#endif
