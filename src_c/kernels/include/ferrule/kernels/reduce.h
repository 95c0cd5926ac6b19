/* SPDX-License-Identifier: Apache-2.0 */
/* MEAN and SUM over any axes. Every function is reentrant and may write its output over its input.
 */
#ifndef FERRULE_KERNELS_REDUCE_H
#define FERRULE_KERNELS_REDUCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Four nested loops over the input, outermost first; loops that are not needed have extent 1.
 */
struct ferrule_reduce_loops {
    int32_t extents[4];
    int32_t strides[4]; /* elements */
};

struct ferrule_reduce_int_params {
    struct ferrule_reduce_loops kept;
    struct ferrule_reduce_loops reduced;
    int32_t offset; /* added to each sum: minus zero point times elements, modulo 2^32 */
    int32_t output_zero_point;
    int32_t multiplier;
    int32_t shift; /* -31 to 30, see requantize.h */
};

struct ferrule_float_mean_params {
    struct ferrule_reduce_loops kept;
    struct ferrule_reduce_loops reduced;
    int32_t offset; /* added to each sum: minus zero point times elements; sums have 32 bits */
    int32_t output_zero_point;
    float factor; /* includes the division */
};

struct ferrule_real_mean_params {
    struct ferrule_reduce_loops kept;
    struct ferrule_reduce_loops reduced;
    int32_t count; /* elements of each mean */
    int32_t zero_point;
    int32_t output_zero_point;
    float scale;
    float output_scale;
};

struct ferrule_reduce_f32_params {
    struct ferrule_reduce_loops kept;
    struct ferrule_reduce_loops reduced;
    float divisor; /* 1 for a sum */
};

/** @brief Mean or sum of int8; the sums wrap at 32 bits, the results saturate. */
void ferrule_reduce_s8(const struct ferrule_reduce_int_params *params, const int8_t *input,
                       int8_t *output);

/** @brief Mean of int8, rounded to even in float32 (ONNX's rule); the results saturate. */
void ferrule_float_mean_s8(const struct ferrule_float_mean_params *params, const int8_t *input,
                           int8_t *output);

/** @brief Mean of int8 in float32 with four sums, rounded to even (ONNX's rule in float32). */
void ferrule_real_mean_s8(const struct ferrule_real_mean_params *params, const int8_t *input,
                          int8_t *output);

/** @brief Mean or sum of int16; the sums wrap at 32 bits, the results saturate. */
void ferrule_reduce_s16(const struct ferrule_reduce_int_params *params, const int16_t *input,
                        int16_t *output);

/** @brief Mean or sum of float32, with compensated sums. */
void ferrule_reduce_f32(const struct ferrule_reduce_f32_params *params, const float *input,
                        float *output);

#ifdef __cplusplus
}
#endif

#endif
