/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file LOG_SOFTMAX, L2_NORMALIZATION and LAYER_NORMALIZATION over the innermost axis. Any context;
 * the kernels keep no state between calls.
 *
 * The output may share memory with the input.
 */
#ifndef FERRULE_KERNELS_NORMALIZE_H_INCLUDED
#define FERRULE_KERNELS_NORMALIZE_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_rows_f32_params {
    int32_t rows;
    int32_t depth; /**< elements of a row */
};

struct ferrule_l2_normalization_s8_params {
    int32_t zero_point;
    int32_t rows;
    int32_t depth; /**< elements of a row, at most 33025 */
};

struct ferrule_layer_normalization_s8_params {
    const int32_t *gains;   /**< by element of a row */
    const int32_t *offsets; /**< by element of a row, in the unit of the result before the shift */
    int32_t shift;          /**< of the result, 1 to 24 */
    int32_t epsilon;        /**< times 2^epsilon_shift: added to 2^16 depth^2 times the variance */
    int32_t epsilon_shift;
    int32_t headroom; /**< 24 less half of the bits of depth */
    int32_t rows;
    int32_t depth; /**< elements of a row, at most 32768 */
};

struct ferrule_log_softmax_s8_params {
    const int32_t *exponentials; /**< exp(-i * scale) in Q0.31 */
    int32_t count;               /**< number of exponentials; beyond them they are taken as 0 */
    int32_t least;      /**< differences up to this negative number have the lowest result */
    int32_t multiplier; /**< with shift: brings differences to Q5 */
    int32_t shift;
    int32_t reverse_multiplier; /**< with reverse_shift: brings Q5 to differences */
    int32_t reverse_shift;
    int32_t rows;
    int32_t depth; /**< elements of a row, at most 4095 */
};

/** @brief Divide float32 by the root of the sum of their squares, which counts as 1e-6 at least. */
void ferrule_l2_normalization_f32(const struct ferrule_rows_f32_params *params, const float *input,
                                  float *output);

/** @brief The same of int8, to int8 with scale 1/128 and zero point 0. */
void ferrule_l2_normalization_s8(const struct ferrule_l2_normalization_s8_params *params,
                                 const int8_t *input, int8_t *output);

/** @brief (x - mean) / sqrt(variance + epsilon) * gain + offset of int8, as docs/operators.md
 * states it.
 */
void ferrule_layer_normalization_s8(const struct ferrule_layer_normalization_s8_params *params,
                                    const int8_t *input, int8_t *output);

/** @brief Logarithm of the softmax of float32. */
void ferrule_log_softmax_f32(const struct ferrule_rows_f32_params *params, const float *input,
                             float *output);

/** @brief Logarithm of the softmax of int8, to int8 with scale 1/16 and zero point 127. */
void ferrule_log_softmax_s8(const struct ferrule_log_softmax_s8_params *params, const int8_t *input,
                            int8_t *output);

#ifdef __cplusplus
}
#endif

#endif
