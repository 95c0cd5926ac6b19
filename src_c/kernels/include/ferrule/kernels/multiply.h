/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Sums of products of int8 numbers on cores without the DSP extension: the innermost loops of
 * CONV_2D and FULLY_CONNECTED.
 */
#ifndef FERRULE_KERNELS_MULTIPLY_H_INCLUDED
#define FERRULE_KERNELS_MULTIPLY_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/requantize_plain.h"
#include "ferrule/kernels/window.h"

/* Define as 0 to use plain C. */
#ifndef FERRULE_HAS_THUMB2
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 2
#define FERRULE_HAS_THUMB2 1
#else
#define FERRULE_HAS_THUMB2 0
#endif
#endif
#ifndef FERRULE_HAS_THUMB1
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
#define FERRULE_HAS_THUMB1 1
#else
#define FERRULE_HAS_THUMB1 0
#endif
#endif

/** The output channels of a block of CONV_2D, for Armv7-M and for Armv6-M. */
enum { FERRULE_QUAD = 4, FERRULE_DUO = 2 };
/** The output channels of a block of FULLY_CONNECTED. */
enum { FERRULE_OCTET = 8 };

/**
 * @brief Compute and store four channels of two pixels; `plain` is for outputs with
 * ferrule_is_plain().
 *
 * `data` has for each product the values of the two pixels; `weights` has for each product a byte
 * per channel. `products` is positive. The second pixel is stored first, so that both pointers may
 * be equal, if there is only a first one.
 */
void ferrule_multiply_quad_plain(const int16_t *data, const int8_t *weights, int32_t products,
                                 const int32_t *scales, int8_t *first, int8_t *second);
void ferrule_multiply_quad(const int16_t *data, const int8_t *weights, int32_t products,
                           const int32_t *scales, int8_t *first, int8_t *second, int32_t low,
                           int32_t high);
/** @brief Compute the same four channels of two pixels: sums[2 * channel + pixel]. */
void ferrule_multiply_quad_sums(const int16_t *data, const int8_t *weights, int32_t products,
                                int32_t *sums);

/**
 * @brief Compute two channels of two pixels: sums[2 * channel + pixel].
 *
 * `data` has for each product one word, the value of the first pixel plus 2^16 times that of the
 * second; `weights` has a word for two products: those of the first channel, then those of the
 * second. No channel has the weight -128 for both products of a word. `words` is positive.
 */
void ferrule_multiply_duo(const uint32_t *data, const int32_t *weights, int32_t words,
                          int32_t *sums);

/** @brief Compute eight channels of a row; `weights` has for each product a byte per channel.
 * `products` is positive. */
void ferrule_multiply_octet(const int8_t *row, const int8_t *weights, int32_t products,
                            int32_t *sums);

/** CONV_2D in blocks of channels. */
struct ferrule_conv2d_blocks_s8_params {
    struct ferrule_window window;
    struct ferrule_view view;
    int32_t input_zero_point;
    const int16_t *inputs; /**< for a window of one pixel with stride 1 and no padding: the
                              `products` input channels that have weights; null means all */
    int32_t products;      /**< per output; even for blocks of two channels */
    const int8_t *weights; /**< per block, as for the functions above */
    const int32_t *scales; /**< FERRULE_PLAIN_SCALE_WORDS per live channel */
    const int8_t *fixed; /**< one output pixel, used for the channels that are not live; null if all
                            are live */
    int32_t blocks;      /**< of channels that have weights, in a group */
    int32_t output_c;
    struct ferrule_output_s8 output;
};

/** @brief Convolve two pixels and a block of channels at a time; scratch: 4 * products bytes,
 * aligned to 4. Any context. */
void ferrule_conv2d_quad_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                            const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_duo_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                           const int8_t *input, int8_t *output, void *scratch);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_conv2d_quad_single_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                                   const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_quad_onnx_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                                 const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_duo_single_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                                  const int8_t *input, int8_t *output, void *scratch);
void ferrule_conv2d_duo_onnx_s8(const struct ferrule_conv2d_blocks_s8_params *params,
                                const int8_t *input, int8_t *output, void *scratch);

/** FULLY_CONNECTED in blocks of eight channels. */
struct ferrule_fully_connected_octet_s8_params {
    int32_t rows;          /**< of the input and of the output */
    int32_t input_c;       /**< elements of an input row */
    int32_t output_c;      /**< elements of an output row */
    const int8_t *weights; /**< per block, a byte per channel for each element of the row */
    const int32_t *scales; /**< FERRULE_PLAIN_SCALE_WORDS per output channel */
    struct ferrule_output_s8 output;
};

/** @brief Multiply; no scratch. Any context. */
void ferrule_fully_connected_octet_s8(const struct ferrule_fully_connected_octet_s8_params *params,
                                      const int8_t *input, int8_t *output);
void ferrule_fully_connected_octet_single_s8(
    const struct ferrule_fully_connected_octet_s8_params *params, const int8_t *input,
    int8_t *output);
void ferrule_fully_connected_octet_onnx_s8(
    const struct ferrule_fully_connected_octet_s8_params *params, const int8_t *input,
    int8_t *output);

#endif
