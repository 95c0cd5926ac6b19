/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels of CAST; the linker keeps those that are called. */
#include "ferrule/kernels/cast.h"

#include <stdbool.h>

#include "ferrule/kernels/requantize.h"

/* The number cut towards zero, saturated; 0 for NaN. */
static inline int32_t saturated(float value)
{
    if (value != value) {
        return 0;
    }
    if (value >= 2147483648.0f) {
        return INT32_MAX;
    }
    return value <= -2147483648.0f ? INT32_MIN : (int32_t)value;
}

/* The same for int64_t. */
static inline int64_t saturated_s64(float value)
{
    if (value != value) {
        return 0;
    }
    if (value >= 9223372036854775808.0f) {
        return INT64_MAX;
    }
    return value <= -9223372036854775808.0f ? INT64_MIN : (int64_t)value;
}

/* The same for uint32_t. */
static inline uint32_t saturated_u32(float value)
{
    if (value >= 4294967296.0f) {
        return UINT32_MAX;
    }
    return value > 0.0f ? (uint32_t)value : 0u; /* also NaN */
}

/* A kernel, and its result for an element x. */
#define CAST(name, first, second, result)                                                          \
    void name(const struct ferrule_cast_params *params, const void *input, void *output)           \
    {                                                                                              \
        const first *from = (const first *)input;                                                  \
        second *to = (second *)output;                                                             \
        const int32_t elements = params->elements;                                                 \
                                                                                                   \
        for (int32_t i = 0; i < elements; ++i) {                                                   \
            const first x = from[i];                                                               \
                                                                                                   \
            to[i] = result;                                                                        \
        }                                                                                          \
    }

CAST(ferrule_cast_f32_bool, float, bool, x != 0.0f)
CAST(ferrule_cast_f32_s16, float, int16_t,
     (int16_t)ferrule_clamp(saturated(x), INT16_MIN, INT16_MAX))
CAST(ferrule_cast_f32_s32, float, int32_t, saturated(x))
CAST(ferrule_cast_f32_s64, float, int64_t, saturated_s64(x))
CAST(ferrule_cast_f32_s8, float, int8_t, (int8_t)ferrule_clamp(saturated(x), INT8_MIN, INT8_MAX))
CAST(ferrule_cast_f32_u32, float, uint32_t, saturated_u32(x))
CAST(ferrule_cast_f32_u8, float, uint8_t, (uint8_t)ferrule_clamp(saturated(x), 0, UINT8_MAX))
CAST(ferrule_cast_s8_f32, int8_t, float, (float)x)
CAST(ferrule_cast_s8_s16, int8_t, int16_t, (int16_t)x)
CAST(ferrule_cast_s8_s32, int8_t, int32_t, (int32_t)x)
CAST(ferrule_cast_s8_s64, int8_t, int64_t, (int64_t)x)
CAST(ferrule_cast_8, uint8_t, uint8_t, x)
CAST(ferrule_cast_8_bool, uint8_t, bool, x != 0)
CAST(ferrule_cast_u8_f32, uint8_t, float, (float)x)
CAST(ferrule_cast_u8_s16, uint8_t, int16_t, (int16_t)x)
CAST(ferrule_cast_u8_s32, uint8_t, int32_t, (int32_t)x)
CAST(ferrule_cast_u8_s64, uint8_t, int64_t, (int64_t)x)
CAST(ferrule_cast_s16_8, int16_t, uint8_t, (uint8_t)x)
CAST(ferrule_cast_s16_bool, int16_t, bool, x != 0)
CAST(ferrule_cast_s16_f32, int16_t, float, (float)x)
CAST(ferrule_cast_s16_s32, int16_t, int32_t, (int32_t)x)
CAST(ferrule_cast_s16_s64, int16_t, int64_t, (int64_t)x)
CAST(ferrule_cast_s32_8, int32_t, uint8_t, (uint8_t)x)
CAST(ferrule_cast_s32_bool, int32_t, bool, x != 0)
CAST(ferrule_cast_s32_f32, int32_t, float, (float)x)
CAST(ferrule_cast_s32_s16, int32_t, int16_t, (int16_t)x)
CAST(ferrule_cast_s32_s64, int32_t, int64_t, (int64_t)x)
CAST(ferrule_cast_32, uint32_t, uint32_t, x)
CAST(ferrule_cast_u32_f32, uint32_t, float, (float)x)
CAST(ferrule_cast_u32_s64, uint32_t, int64_t, (int64_t)x)
CAST(ferrule_cast_s64_8, int64_t, uint8_t, (uint8_t)x)
CAST(ferrule_cast_s64_bool, int64_t, bool, x != 0)
CAST(ferrule_cast_s64_f32, int64_t, float, (float)x)
CAST(ferrule_cast_s64_s16, int64_t, int16_t, (int16_t)x)
CAST(ferrule_cast_s64_s32, int64_t, int32_t, (int32_t)x)
CAST(ferrule_cast_s64_u32, int64_t, uint32_t, (uint32_t)x)
