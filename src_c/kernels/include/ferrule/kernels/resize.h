/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR of NHWC images. Any context; the kernels keep
 * no state between calls.
 *
 * The output may not share memory with the input.
 */
#ifndef FERRULE_KERNELS_RESIZE_H_INCLUDED
#define FERRULE_KERNELS_RESIZE_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_resize_nearest_neighbor_params {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t pixel_bytes; /**< all channels of a pixel */
    int32_t output_h;
    int32_t output_w;
    const int16_t *rows;    /**< by row of the output, the row of the input */
    const int16_t *columns; /**< by column of the output, the column of the input */
};

enum {
    FERRULE_RESIZE_WHOLE = 1 << 10 /**< the sum of the weights of two int8 pixels */
};

/** int8; a weight that is not 0 belongs to the row or column after the one that is listed. */
struct ferrule_resize_bilinear_s8_params {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t channels;
    int32_t output_h;
    int32_t output_w;
    const int16_t *rows;           /**< by row of the output, the upper row of the input */
    const int16_t *row_weights;    /**< of the lower row, below FERRULE_RESIZE_WHOLE */
    const int16_t *columns;        /**< by column of the output, the left column of the input */
    const int16_t *column_weights; /**< of the right column, below FERRULE_RESIZE_WHOLE */
};

/** float32; as ferrule_resize_bilinear_s8_params, with weights below 1. */
struct ferrule_resize_bilinear_f32_params {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t channels;
    int32_t output_h;
    int32_t output_w;
    const int16_t *rows;
    const float *row_weights;
    const int16_t *columns;
    const float *column_weights;
};

/** int8 in float32; each array has the numbers of the first pixels, then those of the second. */
struct ferrule_float_resize_bilinear_params {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t channels;
    int32_t output_h;
    int32_t output_w;
    const int16_t *rows;
    const float *row_weights;
    const int16_t *columns;
    const float *column_weights;
    float scale;
    int32_t zero_point;
    float output_scale;
    int32_t output_zero_point;
};

/** @brief Copy the listed pixels of any type. */
void ferrule_resize_nearest_neighbor(const struct ferrule_resize_nearest_neighbor_params *params,
                                     const void *input, void *output);

/** @brief Interpolate between four pixels; halves are rounded away from zero. */
void ferrule_resize_bilinear_s8(const struct ferrule_resize_bilinear_s8_params *params,
                                const int8_t *input, int8_t *output);

/** @brief Interpolate between four pixels with any scales, halves to even (ONNX's rule). */
void ferrule_float_resize_bilinear_s8(const struct ferrule_float_resize_bilinear_params *params,
                                      const int8_t *input, int8_t *output);

/** @brief Interpolate between four pixels. */
void ferrule_resize_bilinear_f32(const struct ferrule_resize_bilinear_f32_params *params,
                                 const float *input, float *output);

#ifdef __cplusplus
}
#endif

#endif
