/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize_once.h"

#define LARGEST (INT32_C(1) << 30)

int32_t ferrule_requantize_single_any(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t right = 31 - shift;
    const int64_t scaled = ((int64_t)value * multiplier + (INT64_C(1) << (right - 1))) >> right;

    if (scaled < -LARGEST) {
        return -LARGEST;
    }
    return scaled > LARGEST ? LARGEST : (int32_t)scaled;
}

/* Divide by 2^right, 1 to 62, with halves to even; the value is below 2^62. */
static uint64_t divided(uint64_t value, int32_t right)
{
    const uint64_t whole = value >> right;
    const uint64_t below_half = (UINT64_C(1) << (right - 1)) - 1u;

    /* A carry reaches the whole part above a half, and at a half if the whole part is odd. */
    return (value + below_half + (whole & 1u)) >> right;
}

/* Round to the 24 bits of a float32 number, halves to even. */
static uint64_t rounded(uint64_t value)
{
    int32_t excess = 0;

    while ((value >> excess) >> 24 != 0) {
        ++excess;
    }
    return excess == 0 ? value : divided(value, excess) << excess;
}

int32_t ferrule_requantize_onnx_any(int32_t value, int32_t multiplier, int32_t shift)
{
    const uint32_t magnitude = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    const uint64_t product = rounded(rounded(magnitude) * (uint32_t)multiplier);
    const uint64_t scaled = divided(product, 31 - shift);
    const int32_t result = scaled > (uint64_t)LARGEST ? LARGEST : (int32_t)scaled;

    return value < 0 ? -result : result;
}
