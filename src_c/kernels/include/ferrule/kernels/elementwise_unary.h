/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Functions of one float32, element by element. Any context; the kernels keep no state
 * between calls.
 *
 * The output may share memory with the input.
 */
#ifndef FERRULE_KERNELS_ELEMENTWISE_UNARY_H_INCLUDED
#define FERRULE_KERNELS_ELEMENTWISE_UNARY_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_elementwise_unary_params {
    int32_t elements;
};

/** @brief The smallest integer not below x; zeros keep their sign. */
void ferrule_ceil_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                      float *output);

/** @brief The largest integer not above x; zeros keep their sign. */
void ferrule_floor_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                       float *output);

/** @brief -x; the sign of zeros and NaNs changes as well. */
void ferrule_neg_f32(const struct ferrule_elementwise_unary_params *params, const float *input,
                     float *output);

#ifdef __cplusplus
}
#endif

#endif
