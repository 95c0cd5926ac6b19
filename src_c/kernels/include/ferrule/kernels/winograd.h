/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CONV_2D with a window of 3x3 pixels and stride 1, by Winograd's algorithm F(2x2, 3x3). Any
 * context; the kernel keeps no state between calls.
 *
 * A tile is 2x2 output pixels. With G = {{1, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 1}}, the weights
 * become U = G g G^T, and the 4x4 input pixels of a tile V = B^T d B; 16 sums of products U * V
 * over the input channels are then combined, with A^T = {{2, 1, 1, 0}, {0, 1, -1, -2}}, to exactly
 * four times the sums of the convolution. All of U and V fit into 16 bits; intermediate sums may
 * wrap modulo 2^32.
 */
#ifndef FERRULE_KERNELS_WINOGRAD_H_INCLUDED
#define FERRULE_KERNELS_WINOGRAD_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/window.h"

enum {
    FERRULE_WINOGRAD_POSITIONS = 16,  /**< products per tile and channel */
    FERRULE_WINOGRAD_BLOCK = 4,       /**< output channels computed at once */
    FERRULE_WINOGRAD_CHUNK = 16,      /**< input channels are padded to a multiple of this */
    FERRULE_WINOGRAD_PROVED_WORDS = 2 /**< constants per channel in the proved form: multiplier, and
                                         256 * bias plus rounding */
};

/** int8 with a multiple of 4 input channels and of 4 output channels. */
struct ferrule_conv2d_winograd_s8_params {
    struct ferrule_window window; /**< the kernel's extents are 3, strides and dilations 1 */
    int32_t output_c;
    int32_t input_zero_point;
    const int32_t *transformed; /**< U by block, position, four input channels (0 and 2, then 1 and
                                   3) and output channel; null to compute it in scratch */
    const int32_t
        *weights;          /**< without `transformed`: words of four input channels, by block, four
                              input channels (padded to 16), output channel and pixel of the window */
    int32_t pairs_at_once; /**< times two tiles whose V is in scratch; 1 with `transformed` */
    const int32_t *channels; /**< constants per channel, see ferrule/kernels/requantize_dsp.h */
    bool proved;             /**< whether they have the proved form, not the exact one */
    struct ferrule_output_s8 output;
};

/**
 * @brief Convolve two tiles and four channels at a time.
 *
 * The tiles go from left to right, then downwards; the pixels under a tile are read before it is
 * written. Let c be input_c, rounded up to a multiple of 16. Scratch: 64 * c * pairs_at_once bytes
 * for V, 512 for sums, and without `transformed` 2048 for U; there, with c > 16, the sums take 512
 * * pairs_at_once bytes. It is aligned to 16.
 */
void ferrule_conv2d_winograd_s8(const struct ferrule_conv2d_winograd_s8_params *params,
                                const int8_t *input, int8_t *output, void *scratch);

#endif
