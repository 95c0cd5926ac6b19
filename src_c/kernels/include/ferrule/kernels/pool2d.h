/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D. Any context; the kernels keep no state between
 * calls.
 */
#ifndef FERRULE_KERNELS_POOL2D_H_INCLUDED
#define FERRULE_KERNELS_POOL2D_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/window.h"

struct ferrule_pool2d_run;

/** Integers; every window covers at least one pixel, and dilations are 1. */
struct ferrule_pool2d_params {
    struct ferrule_window window;
    int32_t low;
    int32_t high;
    /** int8: the function below for windows that lie inside the image, and for those that its edge
     * cuts, null if there are none. A model contains the functions that its pools name. */
    void (*whole)(const struct ferrule_pool2d_run *run);
    void (*cut)(const struct ferrule_pool2d_run *run);
};

/** float32; every window covers at least one pixel, and dilations are 1. */
struct ferrule_pool2d_f32_params {
    struct ferrule_window window;
    float low;
    float high;
};

/** int8 in float32; as ferrule_pool2d_params. */
struct ferrule_float_pool2d_params {
    struct ferrule_window window;
    float scale;
    int32_t zero_point;
    float output_scale;
    float output_zero_point; /**< an integer, of the model's values */
    int32_t stored_offset;   /**< turns a value of the model into a stored one */
    float low;               /**< an integer, of the stored values, as high */
    float high;
};

/** @brief Return the quotient rounded to nearest, halves away from zero. */
static inline int32_t ferrule_mean(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/**
 * @brief Average over the pixels inside the image, halves away from zero; no scratch.
 *
 * The channels of a window are read before the same channels of its pixel are written.
 */
void ferrule_average_pool2d_s8(const struct ferrule_pool2d_params *params, const int8_t *input,
                               int8_t *output);
void ferrule_average_pool2d_s16(const struct ferrule_pool2d_params *params, const int16_t *input,
                                int16_t *output);
void ferrule_average_pool2d_f32(const struct ferrule_pool2d_f32_params *params, const float *input,
                                float *output);

/** @brief Pool whole windows of 2x2 or 3x3 pixels; windows of any size, of averages with at most
 * 185 pixels, which need no division; or those with any number of pixels. */
void ferrule_average_pool2d_2x2_s8(const struct ferrule_pool2d_run *run);
void ferrule_average_pool2d_3x3_s8(const struct ferrule_pool2d_run *run);
void ferrule_average_pool2d_any_s8(const struct ferrule_pool2d_run *run);
void ferrule_average_pool2d_many_s8(const struct ferrule_pool2d_run *run);
void ferrule_max_pool2d_2x2_s8(const struct ferrule_pool2d_run *run);
void ferrule_max_pool2d_3x3_s8(const struct ferrule_pool2d_run *run);
void ferrule_max_pool2d_any_s8(const struct ferrule_pool2d_run *run);

/** @brief Average in float32 with any scales, halves to even (ONNX's rule); no scratch. */
void ferrule_float_average_pool2d_s8(const struct ferrule_float_pool2d_params *params,
                                     const int8_t *input, int8_t *output);

/** @brief The same, but each column of a window is added up for itself. */
void ferrule_columns_average_pool2d_s8(const struct ferrule_float_pool2d_params *params,
                                       const int8_t *input, int8_t *output);

/** @brief Root of the mean of the squares of the pixels inside the image; no scratch. */
void ferrule_l2_pool2d_f32(const struct ferrule_pool2d_f32_params *params, const float *input,
                           float *output);

/** @brief Maximum over the pixels inside the image, in the same order; no scratch. */
void ferrule_max_pool2d_s8(const struct ferrule_pool2d_params *params, const int8_t *input,
                           int8_t *output);
void ferrule_max_pool2d_s16(const struct ferrule_pool2d_params *params, const int16_t *input,
                            int16_t *output);
void ferrule_max_pool2d_f32(const struct ferrule_pool2d_f32_params *params, const float *input,
                            float *output);

#endif
