/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file BATCH_MATMUL. Any context; the kernels keep no state between calls.
 *
 * The output may not share memory with the inputs.
 */
#ifndef FERRULE_KERNELS_BATCH_MATMUL_H_INCLUDED
#define FERRULE_KERNELS_BATCH_MATMUL_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/requantize.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FERRULE_BATCH_MATMUL_AXES = 3 };

/** The elements of an input from one index to the next. */
struct ferrule_batch_matmul_strides {
    int32_t batches[FERRULE_BATCH_MATMUL_AXES]; /**< 0 where the input is broadcast */
    int32_t line;                               /**< from a row, or a column, to the next */
    int32_t depth;                              /**< along a sum */
};

struct ferrule_batch_matmul_shape {
    int32_t batches[FERRULE_BATCH_MATMUL_AXES];
    int32_t rows;
    int32_t columns;
    int32_t depth;
    struct ferrule_batch_matmul_strides left;
    struct ferrule_batch_matmul_strides right;
};

/** int8 and int16; the multiplier of int16 has 15 bits, and its zero points are 0. */
struct ferrule_batch_matmul_int_params {
    struct ferrule_batch_matmul_shape shape;
    int32_t left_zero_point;
    int32_t right_zero_point;
    int32_t multiplier;
    int32_t shift;
    int32_t output_zero_point;
};

/** float32. */
struct ferrule_batch_matmul_f32_params {
    struct ferrule_batch_matmul_shape shape;
};

/** @brief Multiply matrices; sums must fit into 32 bits (s8) or 47 bits (s16). No scratch. */
void ferrule_batch_matmul_s8(const struct ferrule_batch_matmul_int_params *params,
                             const int8_t *left, const int8_t *right, int8_t *output);
void ferrule_batch_matmul_s16(const struct ferrule_batch_matmul_int_params *params,
                              const int16_t *left, const int16_t *right, int16_t *output);
void ferrule_batch_matmul_f32(const struct ferrule_batch_matmul_f32_params *params,
                              const float *left, const float *right, float *output);

/** @brief The same by the rules SINGLE and ONNX of `ferrule/kernels/requantize_once.h`. */
void ferrule_batch_matmul_single_s8(const struct ferrule_batch_matmul_int_params *params,
                                    const int8_t *left, const int8_t *right, int8_t *output);
void ferrule_batch_matmul_onnx_s8(const struct ferrule_batch_matmul_int_params *params,
                                  const int8_t *left, const int8_t *right, int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
