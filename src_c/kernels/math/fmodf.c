/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

union bits {
    float value;
    uint32_t word;
};

/* A positive finite number, mantissa * 2^exponent; the mantissa has 24 bits. */
struct number {
    uint32_t mantissa;
    int32_t exponent;
};

static struct number number_of(uint32_t word)
{
    struct number number = {.mantissa = word & UINT32_C(0x007FFFFF),
                            .exponent = (int32_t)(word >> 23) - 150};

    if (word >= UINT32_C(0x00800000)) {
        number.mantissa |= UINT32_C(0x00800000);
        return number;
    }
    ++number.exponent;
    while (number.mantissa < UINT32_C(0x00800000)) {
        number.mantissa <<= 1;
        --number.exponent;
    }
    return number;
}

float ferrule_fmodf(float x, float y)
{
    const uint32_t infinity = UINT32_C(0x7F800000);
    union bits bits = {.value = x};
    union bits divisor = {.value = y};
    uint32_t sign = bits.word & UINT32_C(0x80000000);
    uint32_t magnitude = bits.word ^ sign;
    uint32_t limit = divisor.word & UINT32_C(0x7FFFFFFF);

    if (magnitude >= infinity || limit == 0u || limit > infinity) {
        bits.word = UINT32_C(0x7FC00000);
        return bits.value;
    }
    if (magnitude < limit) {
        return x;
    }

    struct number rest = number_of(magnitude);
    struct number step = number_of(limit);

    while (rest.exponent > step.exponent) { /* long division; the rest stays below two steps */
        rest.mantissa -= rest.mantissa >= step.mantissa ? step.mantissa : 0u;
        rest.mantissa <<= 1;
        --rest.exponent;
    }
    rest.mantissa -= rest.mantissa >= step.mantissa ? step.mantissa : 0u;
    if (rest.mantissa == 0u) {
        bits.word = sign;
        return bits.value;
    }
    while (rest.mantissa < UINT32_C(0x00800000) && rest.exponent > -149) {
        rest.mantissa <<= 1;
        --rest.exponent;
    }
    while (rest.exponent < -149) { /* the digits lost are zeros */
        rest.mantissa >>= 1;
        ++rest.exponent;
    }
    bits.word = sign | (rest.mantissa & UINT32_C(0x007FFFFF));
    if (rest.mantissa >= UINT32_C(0x00800000)) {
        bits.word |= (uint32_t)(rest.exponent + 150) << 23;
    }
    return bits.value;
}
