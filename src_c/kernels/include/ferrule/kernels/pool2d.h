/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file AVERAGE_POOL_2D and MAX_POOL_2D. Any context; the kernels keep no state between calls.
 */
#ifndef FERRULE_KERNELS_POOL2D_H_INCLUDED
#define FERRULE_KERNELS_POOL2D_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/window.h"

/** Integers; every window covers at least one pixel, and dilations are 1. */
struct ferrule_pool2d_params {
    struct ferrule_window window;
    int32_t low;
    int32_t high;
};

/** float32; every window covers at least one pixel, and dilations are 1. */
struct ferrule_pool2d_f32_params {
    struct ferrule_window window;
    float low;
    float high;
};

/** @brief Return the quotient rounded to nearest, halves away from zero. */
static inline int32_t ferrule_mean(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/** @brief Average over the pixels inside the image, halves away from zero; no scratch. */
void ferrule_average_pool2d_s8(const struct ferrule_pool2d_params *params, const int8_t *input,
                               int8_t *output);
void ferrule_average_pool2d_s16(const struct ferrule_pool2d_params *params, const int16_t *input,
                                int16_t *output);
void ferrule_average_pool2d_f32(const struct ferrule_pool2d_f32_params *params, const float *input,
                                float *output);

/** @brief Maximum over the pixels inside the image; no scratch. */
void ferrule_max_pool2d_s8(const struct ferrule_pool2d_params *params, const int8_t *input,
                           int8_t *output);
void ferrule_max_pool2d_s16(const struct ferrule_pool2d_params *params, const int16_t *input,
                            int16_t *output);
void ferrule_max_pool2d_f32(const struct ferrule_pool2d_f32_params *params, const float *input,
                            float *output);

#endif
