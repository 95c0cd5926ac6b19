/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Functions of one value, element by element. Any context; the kernels keep no state
 * between calls.
 *
 * The output may share memory with the input.
 */
#ifndef FERRULE_KERNELS_ELEMENTWISE_UNARY_H_INCLUDED
#define FERRULE_KERNELS_ELEMENTWISE_UNARY_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_elementwise_unary_params {
    int32_t elements;
};

/** ABS and RSQRT of int16: the factor multiplier * 2^(shift - 31). */
struct ferrule_stored_unary_params {
    int32_t multiplier;
    int32_t shift;
    int32_t elements;
};

/** @brief The magnitude of x. */
void ferrule_abs_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief The magnitude of int16 with another scale, saturated; zero points are 0. */
void ferrule_abs_s16(const struct ferrule_stored_unary_params *params, const int16_t *input,
                     int16_t *output);

/** @brief The smallest integer not below x; zeros keep their sign. */
void ferrule_ceil_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                      float *output);

/** @brief Cosine of x. */
void ferrule_cos_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief x, or exp(x) - 1 for negative numbers. */
void ferrule_elu_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief e to the power of x. */
void ferrule_exp_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief The largest integer not above x; zeros keep their sign. */
void ferrule_floor_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                       float *output);

/** @brief Natural logarithm of x. */
void ferrule_log_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief The negation of a truth value. */
void ferrule_logical_not_bool(const struct ferrule_elementwise_unary_params *params,
                              const bool *input, bool *output);

/** @brief -x; the sign of zeros and NaNs changes as well. */
void ferrule_neg_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief The nearest integer, halves to even; of zeros, only zeros keep their sign. */
void ferrule_round_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                       float *output);

/** @brief 1 / sqrt(x). */
void ferrule_rsqrt_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                       float *output);

/** @brief 1 / sqrt(x) of int16 with another scale, saturated; the highest number for x <= 0. */
void ferrule_rsqrt_s16(const struct ferrule_stored_unary_params *params, const int16_t *input,
                       int16_t *output);

/** @brief -1, 0 or 1; 0 for zeros of both signs, and NaN for NaN. */
void ferrule_sign_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                      float *output);

/** @brief Sine of x. */
void ferrule_sin_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

/** @brief Square root of x. */
void ferrule_sqrt_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                      float *output);

/** @brief x * x. */
void ferrule_square_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                        float *output);

#ifdef __cplusplus
}
#endif

#endif
