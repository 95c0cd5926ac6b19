/* SPDX-License-Identifier: Apache-2.0 */
/* The conversion of float32 to integers by CAST; internal to the kernels. */
#ifndef FERRULE_KERNELS_CAST_ELEMENT_H
#define FERRULE_KERNELS_CAST_ELEMENT_H

#include "ferrule/kernels/cast.h"
#include "ferrule/kernels/requantize.h"

/* The number cut towards zero, saturated; 0 for NaN. */
static inline int32_t ferrule_saturated(float value)
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
static inline int64_t ferrule_saturated_s64(float value)
{
    if (value != value) {
        return 0;
    }
    if (value >= 9223372036854775808.0f) {
        return INT64_MAX;
    }
    return value <= -9223372036854775808.0f ? INT64_MIN : (int64_t)value;
}

#endif
