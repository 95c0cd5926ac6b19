/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file CAST: elements in another type. Any context; the kernels keep no state between calls.
 *
 * Integers wrap; floats are cut towards zero and saturate, and NaN becomes 0. The output may share
 * memory with the input if its elements are not longer. bool is stored as 0 or 1.
 */
#ifndef FERRULE_KERNELS_CAST_H_INCLUDED
#define FERRULE_KERNELS_CAST_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_cast_params {
    int32_t elements;
};

/** @brief Copy int8, uint8 or bool to int8 or uint8. */
void ferrule_cast_8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int8, uint8 or bool to bool. */
void ferrule_cast_8_bool(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int8 to int16. */
void ferrule_cast_s8_s16(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int8 to int32. */
void ferrule_cast_s8_s32(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int8 to float32. */
void ferrule_cast_s8_f32(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert uint8 or bool to int16. */
void ferrule_cast_u8_s16(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert uint8 or bool to int32. */
void ferrule_cast_u8_s32(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert uint8 or bool to float32. */
void ferrule_cast_u8_f32(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int16 to int8 or uint8. */
void ferrule_cast_s16_8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int16 to int32. */
void ferrule_cast_s16_s32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int16 to float32. */
void ferrule_cast_s16_f32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int16 to bool. */
void ferrule_cast_s16_bool(const struct ferrule_cast_params *params, const void *input,
                           void *output);

/** @brief Copy int32 to uint32 or back. */
void ferrule_cast_32(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert uint32 to float32. */
void ferrule_cast_u32_f32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert float32 to uint32. */
void ferrule_cast_f32_u32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int32 to int8 or uint8. */
void ferrule_cast_s32_8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int32 to int16. */
void ferrule_cast_s32_s16(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int32 to float32. */
void ferrule_cast_s32_f32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int32 to bool. */
void ferrule_cast_s32_bool(const struct ferrule_cast_params *params, const void *input,
                           void *output);

/** @brief Convert float32 to int8. */
void ferrule_cast_f32_s8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert float32 to uint8. */
void ferrule_cast_f32_u8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert float32 to int16. */
void ferrule_cast_f32_s16(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert float32 to int32. */
void ferrule_cast_f32_s32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert float32 to bool. */
void ferrule_cast_f32_bool(const struct ferrule_cast_params *params, const void *input,
                           void *output);

/** @brief Convert int8 to int64. */
void ferrule_cast_s8_s64(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert uint8 or bool to int64. */
void ferrule_cast_u8_s64(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int16 to int64. */
void ferrule_cast_s16_s64(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int32 to int64. */
void ferrule_cast_s32_s64(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert uint32 to int64. */
void ferrule_cast_u32_s64(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert float32 to int64, cut towards zero and saturated; NaN becomes 0. */
void ferrule_cast_f32_s64(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int64 to int8 or uint8. */
void ferrule_cast_s64_8(const struct ferrule_cast_params *params, const void *input, void *output);

/** @brief Convert int64 to int16. */
void ferrule_cast_s64_s16(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int64 to int32. */
void ferrule_cast_s64_s32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int64 to uint32. */
void ferrule_cast_s64_u32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int64 to float32. */
void ferrule_cast_s64_f32(const struct ferrule_cast_params *params, const void *input,
                          void *output);

/** @brief Convert int64 to bool. */
void ferrule_cast_s64_bool(const struct ferrule_cast_params *params, const void *input,
                           void *output);

#ifdef __cplusplus
}
#endif

#endif
