/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

union bits {
    float value;
    uint32_t word;
};

/* The magnitude of a finite number but 0, mantissa * 2^exponent; the mantissa has 24 bits. */
static uint32_t mantissa_of(float x, int32_t *exponent)
{
    union bits bits = {.value = x};
    uint32_t word = bits.word & UINT32_C(0x7FFFFFFF);
    uint32_t mantissa = word & UINT32_C(0x007FFFFF);

    *exponent = (int32_t)(word >> 23) - 150;
    if (word >= UINT32_C(0x00800000)) {
        return mantissa | UINT32_C(0x00800000);
    }
    ++*exponent;
    while (mantissa < UINT32_C(0x00800000)) {
        mantissa <<= 1;
        --*exponent;
    }
    return mantissa;
}

/* digits * 2^exponent, rounded once; digits are 2^52 or more */
static float rounded(uint64_t digits, int32_t exponent)
{
    /* the last of 32 digits stands for all the following ones */
    uint32_t high = (uint32_t)(digits >> 22) | ((digits & UINT64_C(0x003FFFFF)) != 0u ? 1u : 0u);
    float value = (float)high;
    union bits scale = {.value = 79228162514264337593543950336.0f}; /* 2^96 */

    for (exponent += 22; exponent > 96; exponent -= 96) {
        value *= scale.value; /* infinite in the end */
    }
    scale.word = (uint32_t)(exponent + 127) << 23;
    return value * scale.value;
}

/* The quotient rounded to 53 digits, as a float64 has, then down. */
static float quotient(float x, float y)
{
    float plain = x / y;

    if (x == 0.0f || y == 0.0f || x != x || y != y || x - x != 0.0f || y - y != 0.0f) {
        return plain; /* no digits to compute */
    }

    int32_t exponent;
    int32_t least;
    uint32_t rest = mantissa_of(x, &exponent);
    uint32_t divisor = mantissa_of(y, &least);
    bool negative = (x < 0.0f) != (y < 0.0f);
    uint64_t digits = 0;

    exponent -= least;
    if (rest < divisor) {
        rest <<= 1;
        --exponent;
    }
    if (exponent < 0) { /* a magnitude below 1, which 53 digits can round up to 1 only if it is 1 */
        return negative ? -1.0f : 0.0f;
    }
    for (int32_t i = 0; i < 53; ++i) { /* long division */
        digits <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            digits |= 1u;
        }
        rest <<= 1;
    }
    if (rest > divisor || (rest == divisor && (digits & 1u) != 0u)) {
        ++digits;
    }
    exponent -= 52;
    if (exponent < 0) {
        uint64_t fraction = digits & ((UINT64_C(1) << -exponent) - 1u);

        digits -= fraction;
        if (negative && fraction != 0u) {
            digits += UINT64_C(1) << -exponent;
        }
    }

    float magnitude = rounded(digits, exponent);

    return negative ? -magnitude : magnitude;
}

#define FERRULE_KERNEL       ferrule_floor_div_f32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        float
#define FERRULE_SECOND       float
#define FERRULE_OUTPUT       float
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) quotient(x, y)
#include "ferrule/kernels/elementwise.inc.h"
