/* SPDX-License-Identifier: Apache-2.0 */
/* QUANTIZE and DEQUANTIZE; QUANTIZE of 8 bits is a table (lookup.h). Every function is reentrant
 * and may write its output over its input if the elements have the same size. */
#ifndef FERRULE_KERNELS_QUANTIZE_H
#define FERRULE_KERNELS_QUANTIZE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_quantize_f32_params {
    float scale;
    int32_t zero_point;
    int32_t elements;
};

struct ferrule_requantize_params {
    int32_t input_zero_point;
    int32_t output_zero_point;
    int32_t multiplier;
    int32_t shift; /* -31 to 30, see requantize.h */
    int32_t elements;
};

struct ferrule_dequantize_params {
    float scale;
    int32_t zero_point;
    int32_t elements;
};

/** @brief round(input / scale) + zero point, halves away from zero, saturated; NaN becomes the zero
 * point. */
void ferrule_quantize_f32_s8(const struct ferrule_quantize_f32_params *params, const float *input,
                             int8_t *output);

/** @brief round(input / scale) + zero point, halves to even, saturated; NaN becomes the lowest
 * value. */
void ferrule_quantize_f32_even_s8(const struct ferrule_quantize_f32_params *params,
                                  const float *input, int8_t *output);

/** @brief The same as ferrule_quantize_f32_s8, to int16. */
void ferrule_quantize_f32_s16(const struct ferrule_quantize_f32_params *params, const float *input,
                              int16_t *output);

/** @brief int16 to int8 with another scale and zero point, saturated. */
void ferrule_requantize_s16_s8(const struct ferrule_requantize_params *params, const int16_t *input,
                               int8_t *output);

/** @brief int16 to int16 with another scale and zero point, saturated. */
void ferrule_requantize_s16(const struct ferrule_requantize_params *params, const int16_t *input,
                            int16_t *output);

/** @brief int16 to int32 with another scale and zero point; the sums wrap. */
void ferrule_requantize_s16_s32(const struct ferrule_requantize_params *params,
                                const int16_t *input, int32_t *output);

/** @brief int32 to int8 with another scale and zero point, saturated; the sums wrap. */
void ferrule_requantize_s32_s8(const struct ferrule_requantize_params *params, const int32_t *input,
                               int8_t *output);

/** @brief int32 to int16 with another scale and zero point, saturated; the sums wrap. */
void ferrule_requantize_s32_s16(const struct ferrule_requantize_params *params,
                                const int32_t *input, int16_t *output);

/** @brief scale * (input - zero point) of int8, rounded once. */
void ferrule_dequantize_s8(const struct ferrule_dequantize_params *params, const int8_t *input,
                           float *output);

/** @brief scale * (input - zero point) of uint8, rounded once. */
void ferrule_dequantize_u8(const struct ferrule_dequantize_params *params, const uint8_t *input,
                           float *output);

/** @brief scale * (input - zero point) of int16, rounded once. */
void ferrule_dequantize_s16(const struct ferrule_dequantize_params *params, const int16_t *input,
                            float *output);

#ifdef __cplusplus
}
#endif

#endif
