/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Kernels for the host's vector instructions. They may run on any thread and keep no state
 * between calls.
 *
 * There is one version of each kernel per instruction set, with the same parameters and results.
 * Weights and scales are packed for the lanes of the set (ferrule.backends.cpu_acc.host.lowering).
 */
#ifndef FERRULE_CPU_ACC_HOST_H_INCLUDED
#define FERRULE_CPU_ACC_HOST_H_INCLUDED

#include <stdint.h>

#include "ferrule/cpu_acc/pool.h"
#include "ferrule/kernels/paired.h"
#include "ferrule/kernels/pool2d.h"

/** Bits in the result of ferrule_host_features. */
enum ferrule_host_feature {
    FERRULE_HOST_AVX2 = 1,        /**< with FMA */
    FERRULE_HOST_AVX512_VNNI = 2, /**< with F, BW, DQ and VL */
    FERRULE_HOST_NEON = 4,
    FERRULE_HOST_AMX = 8, /**< AMX of int8, beside AVX-512, with the system's permission */
};

#if defined(__x86_64__) && defined(__linux__) && defined(__has_include)
#if __has_include(<amxint8intrin.h>) || __has_include(<amxintrin.h>)
/* The compiler knows AMX, and the system is one that is asked for it here. */
#define FERRULE_HOST_TILES
#endif
#endif

/** How the sums of a vector of channels become stored values, and what its four scales are. */
enum ferrule_host_rounding {
    FERRULE_HOST_TFLM = 0,  /**< the TFLM rule: bias, multiplier, left shift, right shift */
    FERRULE_HOST_FLOAT = 1, /**< any rule, proved equal in float32: bias, scale, offset, drop */
    FERRULE_HOST_ONNX = 2,  /**< ONNX's rule: bias, factor as float32, 0, 0 */
    FERRULE_HOST_SINGLE = 3 /**< one rounding, halves up: as for the TFLM rule */
};

/** The layout of an image in scratch: padded, converted, and its columns sorted by phase. */
struct ferrule_host_image {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t input_c;
    int32_t top;     /**< rows of padding before the image */
    int32_t left;    /**< columns of padding before the image */
    int32_t rows;    /**< including padding; further rows of the image are left out */
    int32_t columns; /**< including padding; a multiple of phases; the rest is left out */
    int32_t phases;  /**< column x is at place x / phases in part x % phases of its row */
    int32_t zero_point;
};

/** int8 convolution. Element counts refer to the element type of the image in scratch. */
struct ferrule_host_conv2d_s8_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t output_w;
    int32_t output_c;
    int32_t row_step;        /**< elements between the windows of neighbouring output rows */
    int32_t column_step;     /**< elements between the windows of neighbouring output pixels */
    int32_t segments;        /**< runs of elements in a window */
    int32_t words;           /**< per segment; a word has 4 bytes */
    int32_t tiles;           /**< whether rows of output pixels are computed with AMX; 0 or 1 */
    const int32_t *offsets;  /**< of the segments from the window's start, in elements */
    const int8_t *weights;   /**< one vector per group of blocks, segment, word and block */
    const int32_t *scales;   /**< per block, four vectors: see enum ferrule_host_rounding */
    const uint8_t *rounding; /**< per block: enum ferrule_host_rounding */
    struct ferrule_output_s8 output;
    int32_t pieces; /**< pieces of work that threads of a pool may share; at least 1 */
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
    const float *weights; /**< in the same order as for int8 */
    const float *scales;  /**< one vector of biases per block */
    float low;
    float high;
    int32_t pieces; /**< pieces of work that threads of a pool may share; at least 1 */
};

/** int8 depthwise convolution; an output row is processed as one run of elements. */
struct ferrule_host_depthwise_s8_params {
    struct ferrule_host_image image;
    int32_t output_h;
    int32_t row_elements;   /**< per output row */
    int32_t row_step;       /**< elements between the windows of neighbouring output rows */
    int32_t taps;           /**< rounded up to whole groups */
    int32_t period;         /**< vectors after which weights and scales repeat */
    const int32_t *offsets; /**< of the taps from the window's start, in elements */
    const int8_t
        *weights; /**< per vector of the period and group of taps, the vectors of its parts */
    const int32_t *scales;   /**< per vector of the period and part, as for convolutions */
    const uint8_t *rounding; /**< per vector and part: enum ferrule_host_rounding */
    struct ferrule_output_s8 output;
    int32_t pieces; /**< pieces of work that threads of a pool may share; at least 1 */
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
    const float *weights; /**< one vector per vector of the period and tap */
    const float *scales;  /**< biases, per vector of the period */
    float low;
    float high;
    int32_t pieces; /**< pieces of work that threads of a pool may share; at least 1 */
};

/**
 * ADD or SUB of int8 of one shape: (first * a + second * b + offset) >> shift, clamped. The
 * lowering has proved that it is exact for every pair of inputs and does not exceed 32 bits.
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

/** @brief Return the instruction sets that this processor and its operating system support. */
int32_t ferrule_host_features(void);

/**
 * @brief Convolve with VNNI. Scratch: the image, one byte per int8 element, and 64 elements more.
 *
 * `pool` may be NULL; the caller then does all pieces.
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

/** @brief The same with AVX2 and FMA; int8 images have 16-bit elements. */
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

/** @brief The same with NEON; int8 images have 16-bit elements. */
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
