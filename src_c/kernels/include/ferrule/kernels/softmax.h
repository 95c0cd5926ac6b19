/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX over the innermost axis. Every function is reentrant and may write its output over its
 * input if the elements have the same size. */
#ifndef FERRULE_KERNELS_SOFTMAX_H
#define FERRULE_KERNELS_SOFTMAX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_softmax_s8_params {
    const int32_t *exponentials; /* 0, then exp((i - count) * scale * beta) in Q0.31 for i from 1 */
    int32_t count;               /* of exponentials beside the 0, 1 to 256 */
    int32_t rows;
    int32_t depth; /* elements of a row, at most 8191 */
};

struct ferrule_softmax_s16_params {
    const int16_t *exp_table;     /* 513 values of exp over [-10, 0], Q0.15 */
    const int16_t *inverse_table; /* 513 values of 1 / (1 + x) over [0, 1], Q0.15 */
    int32_t multiplier;           /* with shift: brings differences of -10 to -65535 */
    int32_t shift;                /* at most 15 */
    int32_t rows;
    int32_t depth; /* elements of a row, at most 65538 */
};

struct ferrule_float_softmax_params {
    const float *exponentials; /* of the differences from -255 to 0 */
    int32_t steps;             /* of the output's scale in 1; 0 to 65536 */
    int32_t zero_point;
    int32_t rows;
    int32_t depth;
};

struct ferrule_real_softmax_params {
    const float *exponentials; /* of the differences from -255 to 0 */
    float scale;
    int32_t zero_point;
    int32_t rows;
    int32_t depth;
};

struct ferrule_softmax_f32_params {
    float beta;
    int32_t rows;
    int32_t depth;
};

/** @brief Softmax of int8 to int8 with scale 1/256 and zero point -128. */
void ferrule_softmax_s8(const struct ferrule_softmax_s8_params *params, const int8_t *input,
                        int8_t *output);

/** @brief Softmax of int8 to int16 with scale 1/65536 and zero point -32768. */
void ferrule_softmax_s8_s16(const struct ferrule_softmax_s8_params *params, const int8_t *input,
                            int16_t *output);

/** @brief Softmax of int16 to int16 with scale 1/32768 and zero point 0. */
void ferrule_softmax_s16(const struct ferrule_softmax_s16_params *params, const int16_t *input,
                         int16_t *output);

/** @brief Softmax of int8 with any scales in float32, added up in order, halves to even (ONNX's
 * rule). */
void ferrule_float_softmax_s8(const struct ferrule_float_softmax_params *params,
                              const int8_t *input, int8_t *output);

/** @brief Softmax of int8 with any scales in float32, quantised as QuantizeLinear does (ONNX's rule
 * in float32). */
void ferrule_real_softmax_s8(const struct ferrule_real_softmax_params *params, const int8_t *input,
                             int8_t *output);

/** @brief Softmax of float32; a row with a NaN or an infinite maximum gives NaN. */
void ferrule_softmax_f32(const struct ferrule_softmax_f32_params *params, const float *input,
                         float *output);

#ifdef __cplusplus
}
#endif

#endif
