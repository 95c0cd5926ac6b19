/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file RELU and its variants. Any context; the kernels keep no state between calls.
 *
 * The output may share memory with an input of the same shape and type.
 */
#ifndef FERRULE_KERNELS_RECTIFY_H_INCLUDED
#define FERRULE_KERNELS_RECTIFY_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/broadcast.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The factor sign * multiplier * 2^(shift - 31). */
struct ferrule_slope {
    int32_t multiplier; /**< 0 or more */
    int32_t shift;
    int32_t sign; /**< 1 or -1 */
};

/** Non-negative and negative values have separate factors; zero points are 0. */
struct ferrule_rectify_s16_params {
    struct ferrule_slope positive;
    struct ferrule_slope negative;
    int32_t low;
    int32_t high;
    int32_t elements;
};

struct ferrule_relu_f32_params {
    int32_t elements;
};

struct ferrule_bounded_relu_f32_params {
    float low;
    float high;
    int32_t elements;
};

struct ferrule_leaky_relu_f32_params {
    float alpha; /**< factor of negative values */
    int32_t elements;
};

/** Negative values are also multiplied by the second input. */
struct ferrule_prelu_params {
    struct ferrule_broadcast shape;
    int32_t input_zero_point;
    int32_t alpha_zero_point;
    int32_t output_zero_point;
    struct ferrule_slope positive;
    struct ferrule_slope negative;
};

/** PRELU with a table of the results of values from the zero point on. */
struct ferrule_prelu_table_params {
    struct ferrule_broadcast shape;
    int32_t input_offset; /**< minus the zero point */
    int32_t alpha_offset; /**< minus the zero point */
    int32_t multiplier;   /**< with shift: of products */
    int32_t shift;        /**< -22 to -1 */
    const int8_t *table;  /**< the first entry is the zero point of the output */
};

struct ferrule_prelu_f32_params {
    struct ferrule_broadcast shape;
};

/** @brief RELU, RELU6 and LEAKY_RELU of int16. */
void ferrule_rectify_s16(const struct ferrule_rectify_s16_params *params, const int16_t *input,
                         int16_t *output);

/** @brief Negative values become 0. */
void ferrule_relu_f32(const struct ferrule_relu_f32_params *params, const float *input,
                      float *output);

/** @brief Clamp values to the limits. */
void ferrule_bounded_relu_f32(const struct ferrule_bounded_relu_f32_params *params,
                              const float *input, float *output);

/** @brief Negative values are multiplied by alpha. */
void ferrule_leaky_relu_f32(const struct ferrule_leaky_relu_f32_params *params, const float *input,
                            float *output);

/** @brief PRELU of int8 with a table. */
void ferrule_prelu_table_s8(const struct ferrule_prelu_table_params *params, const int8_t *input,
                            const int8_t *alpha, int8_t *output);

/** @brief PRELU of int8 with any scales. */
void ferrule_prelu_s8(const struct ferrule_prelu_params *params, const int8_t *input,
                      const int8_t *alpha, int8_t *output);

/** @brief PRELU of int16 with factors of int8. */
void ferrule_prelu_s16(const struct ferrule_prelu_params *params, const int16_t *input,
                       const int8_t *alpha, int16_t *output);

/** @brief PRELU of float32. */
void ferrule_prelu_f32(const struct ferrule_prelu_f32_params *params, const float *input,
                       const float *alpha, float *output);

#ifdef __cplusplus
}
#endif

#endif
