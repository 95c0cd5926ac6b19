/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file SVDF. Any context; the kernels keep no state between calls: they get the old state and
 * write the new one, which may lie over the old one, also partly if it starts below.
 */
#ifndef FERRULE_KERNELS_SVDF_H_INCLUDED
#define FERRULE_KERNELS_SVDF_H_INCLUDED

#include <stdint.h>

/** Extents; every one is positive. */
struct ferrule_svdf_shape {
    int32_t batches;
    int32_t features; /**< elements of a frame */
    int32_t units;    /**< elements of an output row */
    int32_t rank;     /**< filters per unit */
    int32_t memory;   /**< frames of the state, per filter */
};

struct ferrule_svdf_s8_params {
    struct ferrule_svdf_shape shape;
    const int8_t *feature_weights; /**< [units * rank][features] */
    const int32_t *feature_bias;   /**< by filter: minus zero point times weights */
    const void *time_weights;      /**< [units * rank][memory], of the state's type */
    const int32_t *bias;           /**< by unit */
    int32_t state_multiplier;      /**< with shift: from sums over features to the state */
    int32_t state_shift;
    int32_t state_zero_point;
    int32_t output_multiplier; /**< with shift: from sums over time to the output */
    int32_t output_shift;
    int32_t output_zero_point;
};

struct ferrule_svdf_f32_params {
    struct ferrule_svdf_shape shape;
    const float *feature_weights;
    const float *time_weights;
    const float *bias;
    float low; /**< limits of the output */
    float high;
};

/** @brief int8 with a state of int8; sums over time wrap at 32 bits. */
void ferrule_svdf_s8(const struct ferrule_svdf_s8_params *params, const int8_t *input,
                     const int8_t *state, int8_t *output, int8_t *next);

/** @brief int8 with a state of int16, zero point 0; sums over time wrap at 32 bits. */
void ferrule_svdf_s16_state(const struct ferrule_svdf_s8_params *params, const int8_t *input,
                            const int16_t *state, int8_t *output, int16_t *next);

/** @brief float32. */
void ferrule_svdf_f32(const struct ferrule_svdf_f32_params *params, const float *input,
                      const float *state, float *output, float *next);

#endif
