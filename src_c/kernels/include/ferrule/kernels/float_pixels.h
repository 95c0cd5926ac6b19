/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Sums of products in float32, for blocks of output channels and pairs of pixels.
 *
 * Each sum begins at 0 and adds one product after the other in the order of the window; every
 * product and every sum is rounded (no fused operations), and the bias comes last. So the bits are
 * those of a plain loop on any core.
 *
 * The weights of a block of 4 or 8 channels lie together: those of the first product of all its
 * channels, then those of the second one, and so on; behind them its biases. Weights and biases
 * that the last block lacks are there, too. A block of one channel has no bias in the stream; then
 * the stream has the order of the model, and `bias` is set.
 */
#ifndef FERRULE_KERNELS_FLOAT_PIXELS_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_PIXELS_H_INCLUDED

#include <stdint.h>
#include <string.h>

/* Define as 0 to use plain C. */
#ifndef FERRULE_HAS_VFP
#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__ARM_ARCH_PROFILE) &&                          \
    __ARM_ARCH_PROFILE == 'M' && defined(__thumb2__)
#define FERRULE_HAS_VFP 1
#else
#define FERRULE_HAS_VFP 0
#endif
#endif

#ifndef FERRULE_HAS_MVE_FLOAT
#if FERRULE_HAS_VFP && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define FERRULE_HAS_MVE_FLOAT 1
#else
#define FERRULE_HAS_MVE_FLOAT 0
#endif
#endif

/**
 * Flags of FPSCR: underflow, and a subnormal operand. Vector instructions take subnormal numbers
 * for 0, and set one of them.
 */
#define FERRULE_TOO_SMALL      0x88u
#define FERRULE_TOO_SMALL_TEXT "#0x88"

/** Pixels whose windows are inside the image by the same taps. Distances are in bytes. */
struct ferrule_float_pixels {
    const float *image;     /**< the first element under the window of the first pixel */
    int32_t image_step;     /**< from there to that of the next pixel */
    float *output;          /**< of the first pixel */
    int32_t output_step;    /**< to the next pixel */
    int32_t pixels;         /**< at least 1 */
    const float *stream;    /**< the weights of the first element, in the first block */
    int32_t blocks;         /**< at least 1 */
    int32_t last;           /**< channels of the last block, at least 1 */
    int32_t rows;           /**< of the window inside the image, or 0 */
    int32_t runs;           /**< of adjacent elements in a row */
    int32_t count;          /**< elements of a run */
    int32_t run_step;       /**< from the end of a run to the next one in the row */
    int32_t row_step;       /**< from the end of the last run of a row to the next row */
    int32_t weights_beside; /**< weights of taps outside between two rows */
    int32_t weights_behind; /**< weights of taps outside behind the last row of a block */
    int32_t weights_before; /**< weights of taps outside before the first row of a block */
    float low;
    float high;
    int32_t limits;    /**< see ferrule_float_limits */
    const float *bias; /**< for blocks of one channel */
    int32_t
        multiplier; /**< neighbouring channels with the same input, see ferrule_float_channels */
};

/** How results are clamped. */
enum {
    FERRULE_FLOAT_FINITE = 0,  /**< to the largest numbers */
    FERRULE_FLOAT_RELU = 1,    /**< to 0 and the largest number */
    FERRULE_FLOAT_RELU_N = 2,  /**< to 0 and a positive number */
    FERRULE_FLOAT_LIMITED = 3, /**< to other numbers */
};

/** @brief Return how results are clamped to the limits. */
int32_t ferrule_float_limits(float low, float high);

/** @brief Let all results stay as they are, infinities, too. */
static inline void ferrule_float_unlimited(struct ferrule_float_pixels *pixels)
{
    const uint32_t infinity = UINT32_C(0x7f800000);

    (void)memcpy(&pixels->high, &infinity, sizeof pixels->high);
    pixels->low = -pixels->high;
    pixels->limits = FERRULE_FLOAT_FINITE;
}

/**
 * @brief Compute the pixels in order with weights in blocks of 1, 4 or 8 channels.
 *
 * `image`, `output` and `pixels` have no meaning afterwards.
 */
void ferrule_float_blocks_1(struct ferrule_float_pixels *pixels);
void ferrule_float_blocks_4(struct ferrule_float_pixels *pixels);
void ferrule_float_blocks_8(struct ferrule_float_pixels *pixels);

/**
 * @brief Compute pixels of which each channel has its own weights.
 *
 * Runs have one element, and run_step is the distance of two elements in a row, row_step that from
 * the end of the last one. `last` is the number of channels of a block. There is one block of all
 * channels, with `bias`. Blocks of 8 channels have the biases in the stream, and `multiplier` is 1;
 * the last block has the last 8 channels, and begins `count` bytes before the end of the one
 * before.
 */
void ferrule_float_channels(struct ferrule_float_pixels *pixels);
void ferrule_float_channels_8(struct ferrule_float_pixels *pixels);

#endif
