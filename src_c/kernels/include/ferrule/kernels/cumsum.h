/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CUMSUM. Any context; the kernels keep no state between calls.
 *
 * The output may share memory with the input.
 */
#ifndef FERRULE_KERNELS_CUMSUM_H_INCLUDED
#define FERRULE_KERNELS_CUMSUM_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/requantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The tensors are [outer, extent, inner]; the sums go along the middle axis. */
struct ferrule_cumsum_shape {
    int32_t outer;
    int32_t extent;
    int32_t inner;
    bool exclusive; /**< a sum leaves out the element at its own position */
    bool reverse;   /**< the sums begin at the end */
};

/** int8; sums have 19 bits behind the point, and wrap at 32 bits. */
struct ferrule_cumsum_s8_params {
    struct ferrule_cumsum_shape shape;
    int32_t zero_point;
    int32_t multiplier;
    int32_t shift; /**< 0 or negative */
    int32_t output_zero_point;
};

/** float32. */
struct ferrule_cumsum_f32_params {
    struct ferrule_cumsum_shape shape;
};

/** @brief Add up the elements along an axis, from minus the zero point on; no scratch. */
void ferrule_cumsum_s8(const struct ferrule_cumsum_s8_params *params, const int8_t *input,
                       int8_t *output);

/** @brief Add up the elements along an axis; no scratch. */
void ferrule_cumsum_f32(const struct ferrule_cumsum_f32_params *params, const float *input,
                        float *output);

#ifdef __cplusplus
}
#endif

#endif
