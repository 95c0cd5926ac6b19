/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__thumb__)

float ferrule_sqrtf(float x)
{
    float root;

    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
}

#else

union bits {
    float value;
    uint32_t word;
};

float ferrule_sqrtf(float x)
{
    union bits bits = {.value = x};
    int32_t exponent = 0;

    if (x != x || x == 0.0f || bits.word == UINT32_C(0x7F800000)) {
        return x; /* NaN, zeros and infinity */
    }
    if (x < 0.0f) {
        bits.word = UINT32_C(0x7FC00000);
        return bits.value;
    }
    if (bits.word < UINT32_C(0x00800000)) { /* a denormal number */
        bits.value = x * 16777216.0f;
        exponent = -24;
    }

    /* x = mantissa * 2^exponent with an even exponent and a mantissa of 24 or 25 bits */
    exponent += (int32_t)(bits.word >> 23) - 150;
    uint32_t mantissa = (bits.word & UINT32_C(0x007FFFFF)) | UINT32_C(0x00800000);
    if ((exponent & 1) != 0) {
        mantissa <<= 1;
        --exponent;
    }

    /* the root of mantissa * 2^26, bit by bit: 25 or 26 bits */
    uint32_t root = 0;
    uint32_t rest = 0;
    mantissa <<= 6;
    for (int32_t i = 0; i < 26; ++i) {
        rest = (rest << 2) | (mantissa >> 30);
        mantissa <<= 2;
        root <<= 1;
        if (rest > 2u * root) {
            rest -= 2u * root + 1u;
            ++root;
        }
    }

    /* the last bit stands for all the following ones, so the conversion rounds correctly */
    float digits = (float)(int32_t)(2u * root + (rest != 0u ? 1u : 0u));
    bits.word = (uint32_t)((exponent - 28) / 2 + 127) << 23;
    return digits * bits.value;
}

#endif
