/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Weighted layers with the host's vector instructions. Any thread; nothing is kept between
 * calls.
 *
 * Each kernel comes once per instruction set, with the same parameters and results. Weights and
 * channels are packed for the lanes of the set (ferrule.backends.cpu_acc.host.packing).
 */
#ifndef FERRULE_CPU_ACC_HOST_H_INCLUDED
#define FERRULE_CPU_ACC_HOST_H_INCLUDED

#include <stdint.h>

#include "ferrule/cpu_acc/pool.h"
#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/pool2d.h"

/** Bits of ferrule_host_features. */
enum ferrule_host_feature {
    FERRULE_HOST_AVX2 = 1,        /**< with FMA */
    FERRULE_HOST_AVX512_VNNI = 2, /**< with F, BW, DQ and VL */
    FERRULE_HOST_NEON = 4,
};

/** How an image is laid out in scratch: padded, elements converted, columns perhaps in phases. */
struct ferrule_host_image {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t input_c;
    int32_t top;     /**< rows of padding before the image */
    int32_t left;    /**< columns of padding before the image */
    int32_t rows;    /**< with padding; rows of the image beyond are left out */
    int32_t columns; /**< with padding, a multiple of phases; columns beyond are left out */
    int32_t phases;  /**< column x stands at place x / phases of part x % phases of its row */
    int32_t zero_point;
};

/** int8 convolution. Elements are counted in the layout's own type. */
struct ferrule_host_conv2d_s8_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t output_w;
    int32_t output_c;
    int32_t row_step;       /**< elements between the windows of neighbouring output rows */
    int32_t column_step;    /**< elements between the windows of neighbouring output pixels */
    int32_t segments;       /**< runs of elements in a window */
    int32_t words;          /**< of each segment, 4 bytes each */
    const int32_t *offsets; /**< of the segments, in elements from the window's start */
    const int8_t *weights;  /**< per group of blocks, segment, word and block a vector */
    const int32_t *scales;  /**< per block vectors of bias, multiplier, left and right shift */
    struct ferrule_output_s8 output;
    int32_t pieces; /**< into which the work is divided among the threads of a pool; at least 1 */
};

/** float32 convolution. */
struct ferrule_host_conv2d_f32_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t output_w;
    int32_t output_c;
    int32_t row_step;
    int32_t column_step;
    int32_t segments;
    int32_t words;
    const int32_t *offsets;
    const float *weights; /**< as above */
    const float *scales;  /**< per block a vector of bias */
    float low;
    float high;
    int32_t pieces; /**< into which the work is divided among the threads of a pool; at least 1 */
};

/** int8 depthwise convolution; output rows are walked as one run of elements. */
struct ferrule_host_depthwise_s8_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t row_elements;   /**< of an output row */
    int32_t row_step;       /**< elements between the windows of neighbouring output rows */
    int32_t taps;           /**< rounded up to groups */
    int32_t period;         /**< vectors after which weights and scales repeat */
    const int32_t *offsets; /**< of the taps, in elements from the window's start */
    const int8_t
        *weights; /**< per vector of the period and group of taps the vectors of its parts */
    const int32_t *scales; /**< per vector of the period and part: bias, multiplier, left, right */
    struct ferrule_output_s8 output;
    int32_t pieces; /**< into which the work is divided among the threads of a pool; at least 1 */
};

/** float32 depthwise convolution. */
struct ferrule_host_depthwise_f32_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t row_elements;
    int32_t row_step;
    int32_t taps;
    int32_t period;
    const int32_t *offsets;
    const float *weights; /**< per vector of the period and tap a vector */
    const float *scales;  /**< per vector of the period: bias */
    float low;
    float high;
    int32_t pieces; /**< into which the work is divided among the threads of a pool; at least 1 */
};

/**
 * ADD or SUB of int8 of one shape: (first * a + second * b + offset) >> shift, clamped, which the
 * lowering has proved to be exact for every pair of inputs and to keep to 32 bits.
 */
struct ferrule_host_sum_s8_params {
    int32_t elements;
    int32_t first;
    int32_t second;
    int32_t offset;
    int32_t shift;
    int32_t low;
    int32_t high;
};

/** @brief Return which instruction sets this processor and its operating system support. */
int32_t ferrule_host_features(void);

/**
 * @brief Convolve with VNNI; scratch: the image in bytes, and 64 bytes more.
 *
 * `pool` may be NULL; then the caller does all pieces.
 */
void ferrule_host_conv2d_s8_avx512(const struct ferrule_host_conv2d_s8_params *params,
                                   const int8_t *input, int8_t *output, void *scratch,
                                   struct ferrule_pool *pool);
void ferrule_host_conv2d_f32_avx512(const struct ferrule_host_conv2d_f32_params *params,
                                    const float *input, float *output, void *scratch,
                                    struct ferrule_pool *pool);
void ferrule_host_depthwise_s8_avx512(const struct ferrule_host_depthwise_s8_params *params,
                                      const int8_t *input, int8_t *output, void *scratch,
                                      struct ferrule_pool *pool);
void ferrule_host_depthwise_f32_avx512(const struct ferrule_host_depthwise_f32_params *params,
                                       const float *input, float *output, void *scratch,
                                       struct ferrule_pool *pool);
void ferrule_host_sum_s8_avx512(const struct ferrule_host_sum_s8_params *params,
                                const int8_t *first, const int8_t *second, int8_t *output);
/** Scratch: 4 bytes per channel. */
void ferrule_host_average_pool2d_s8_avx512(const struct ferrule_pool2d_params *params,
                                           const int8_t *input, int8_t *output, void *scratch);
void ferrule_host_max_pool2d_s8_avx512(const struct ferrule_pool2d_params *params,
                                       const int8_t *input, int8_t *output);

/** @brief The same with AVX2 and FMA; int8 images have elements of 16 bits. */
void ferrule_host_conv2d_s8_avx2(const struct ferrule_host_conv2d_s8_params *params,
                                 const int8_t *input, int8_t *output, void *scratch,
                                 struct ferrule_pool *pool);
void ferrule_host_conv2d_f32_avx2(const struct ferrule_host_conv2d_f32_params *params,
                                  const float *input, float *output, void *scratch,
                                  struct ferrule_pool *pool);
void ferrule_host_depthwise_s8_avx2(const struct ferrule_host_depthwise_s8_params *params,
                                    const int8_t *input, int8_t *output, void *scratch,
                                    struct ferrule_pool *pool);
void ferrule_host_depthwise_f32_avx2(const struct ferrule_host_depthwise_f32_params *params,
                                     const float *input, float *output, void *scratch,
                                     struct ferrule_pool *pool);
void ferrule_host_sum_s8_avx2(const struct ferrule_host_sum_s8_params *params, const int8_t *first,
                              const int8_t *second, int8_t *output);
/** Scratch: 4 bytes per channel. */
void ferrule_host_average_pool2d_s8_avx2(const struct ferrule_pool2d_params *params,
                                         const int8_t *input, int8_t *output, void *scratch);
void ferrule_host_max_pool2d_s8_avx2(const struct ferrule_pool2d_params *params,
                                     const int8_t *input, int8_t *output);

/** @brief The same with NEON; int8 images have elements of 16 bits. */
void ferrule_host_conv2d_s8_neon(const struct ferrule_host_conv2d_s8_params *params,
                                 const int8_t *input, int8_t *output, void *scratch,
                                 struct ferrule_pool *pool);
void ferrule_host_conv2d_f32_neon(const struct ferrule_host_conv2d_f32_params *params,
                                  const float *input, float *output, void *scratch,
                                  struct ferrule_pool *pool);
void ferrule_host_depthwise_s8_neon(const struct ferrule_host_depthwise_s8_params *params,
                                    const int8_t *input, int8_t *output, void *scratch,
                                    struct ferrule_pool *pool);
void ferrule_host_depthwise_f32_neon(const struct ferrule_host_depthwise_f32_params *params,
                                     const float *input, float *output, void *scratch,
                                     struct ferrule_pool *pool);
void ferrule_host_sum_s8_neon(const struct ferrule_host_sum_s8_params *params, const int8_t *first,
                              const int8_t *second, int8_t *output);
/** Scratch: 4 bytes per channel. */
void ferrule_host_average_pool2d_s8_neon(const struct ferrule_pool2d_params *params,
                                         const int8_t *input, int8_t *output, void *scratch);
void ferrule_host_max_pool2d_s8_neon(const struct ferrule_pool2d_params *params,
                                     const int8_t *input, int8_t *output);

#endif
