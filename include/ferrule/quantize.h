/* SPDX-License-Identifier: Apache-2.0 */
/** @file Conversions between real numbers and the elements of quantised tensors, real = scale *
 * (stored - zero point), for the functions of generated headers.
 *
 * They are defined here, so that only a program that calls them contains them, and they need no
 * library of mathematics. Quantising divides in single precision and rounds halves away from zero;
 * what is beyond the element's type, and an infinity, becomes its nearest limit, and NaN becomes
 * the zero point. Every bit equals that of TensorFlow Lite Micro's QUANTIZE and DEQUANTIZE, unless
 * the compiler may replace a division by the product with a reciprocal (-ffast-math).
 *
 * Any context. Arrays are not null unless `count` is 0, and do not overlap. */
#ifndef FERRULE_QUANTIZE_H
#define FERRULE_QUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Return `steps` rounded to a whole number, halves away from zero; the nearest limit if it
 * is beyond `lowest` or `highest`, whose size is below 2^24, and 0 for NaN. */
static inline int32_t ferrule_whole_steps(float steps, int32_t lowest, int32_t highest)
{
    if (steps >= (float)highest) {
        return highest;
    }
    if (steps <= (float)lowest) {
        return lowest;
    }
    if (!(steps > (float)lowest)) {
        return 0; /* NaN */
    }
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole; /* exact */
    if (rest >= 0.5f) {
        return whole + 1;
    }
    return rest <= -0.5f ? whole - 1 : whole;
}

/** @brief Quantise `count` real numbers to int8. */
static inline void ferrule_real_to_s8(const float *real, int8_t *stored, size_t count,
                                      int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps =
            ferrule_whole_steps(real[i] / scale, INT8_MIN - zero_point, INT8_MAX - zero_point);
        const int32_t element = steps + zero_point;
        stored[i] = (int8_t)element;
    }
}

/** @brief Quantise `count` real numbers to uint8. */
static inline void ferrule_real_to_u8(const float *real, uint8_t *stored, size_t count,
                                      int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps =
            ferrule_whole_steps(real[i] / scale, -zero_point, UINT8_MAX - zero_point);
        const int32_t element = steps + zero_point;
        stored[i] = (uint8_t)element;
    }
}

/** @brief Quantise `count` real numbers to int16. */
static inline void ferrule_real_to_s16(const float *real, int16_t *stored, size_t count,
                                       int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps =
            ferrule_whole_steps(real[i] / scale, INT16_MIN - zero_point, INT16_MAX - zero_point);
        const int32_t element = steps + zero_point;
        stored[i] = (int16_t)element;
    }
}

/** @brief Quantise `count` real numbers to int32. */
static inline void ferrule_real_to_s32(const float *real, int32_t *stored, size_t count,
                                       int32_t zero_point, float scale)
{
    const int32_t fraction_limit = 8388608; /* 2^23: numbers of this size are whole */
    const float beyond = 4294967296.0f;     /* 2^32, which no zero point brings back */
    for (size_t i = 0; i < count; ++i) {
        const float steps = real[i] / scale;
        int64_t sum = zero_point;
        if (steps >= beyond || steps <= -beyond) {
            sum = steps > 0.0f ? INT32_MAX : INT32_MIN;
        } else if (steps >= (float)fraction_limit || steps <= -(float)fraction_limit) {
            sum += (int64_t)steps;
        } else {
            sum += ferrule_whole_steps(steps, -fraction_limit, fraction_limit);
        }
        if (sum > INT32_MAX) {
            sum = INT32_MAX;
        }
        stored[i] = sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
    }
}

/** @brief Dequantise `count` elements of int8. */
static inline void ferrule_s8_to_real(const int8_t *stored, float *real, size_t count,
                                      int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps = stored[i] - zero_point;
        real[i] = scale * (float)steps;
    }
}

/** @brief Dequantise `count` elements of uint8. */
static inline void ferrule_u8_to_real(const uint8_t *stored, float *real, size_t count,
                                      int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps = stored[i] - zero_point;
        real[i] = scale * (float)steps;
    }
}

/** @brief Dequantise `count` elements of int16. */
static inline void ferrule_s16_to_real(const int16_t *stored, float *real, size_t count,
                                       int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int32_t steps = stored[i] - zero_point;
        real[i] = scale * (float)steps;
    }
}

/** @brief Dequantise `count` elements of int32, in double precision until the last rounding. */
static inline void ferrule_s32_to_real(const int32_t *stored, float *real, size_t count,
                                       int32_t zero_point, float scale)
{
    for (size_t i = 0; i < count; ++i) {
        const int64_t steps = (int64_t)stored[i] - (int64_t)zero_point;
        real[i] = (float)((double)scale * (double)steps);
    }
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_QUANTIZE_H */
