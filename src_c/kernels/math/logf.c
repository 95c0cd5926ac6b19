/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

union bits {
    float value;
    uint32_t word;
};

float ferrule_logf(float x)
{
    union bits bits = {.value = x};
    int32_t exponent = 0;

    if (x != x || bits.word == UINT32_C(0x7F800000)) {
        return x; /* NaN and infinity */
    }
    if (x == 0.0f) {
        bits.word = UINT32_C(0xFF800000);
        return bits.value;
    }
    if (x < 0.0f) {
        bits.word = UINT32_C(0x7FC00000);
        return bits.value;
    }
    if (bits.word < UINT32_C(0x00800000)) { /* a denormal number */
        bits.value = x * 8388608.0f;
        exponent = -23;
    }
    exponent += (int32_t)(bits.word >> 23) - 127;
    bits.word = (bits.word & UINT32_C(0x007FFFFF)) | UINT32_C(0x3F800000);
    if (bits.value > 1.4142135f) {
        bits.value *= 0.5f;
        ++exponent;
    }

    /* log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + s^2 (2/3 + ...)) with s = f / (2 + f), fitted to
     * 2^-34 */
    float n = (float)exponent;
    float f = bits.value - 1.0f;
    float s = f / (2.0f + f);
    float z = s * s;
    float half = 0.5f * f * f;
    float p = 0.2334378f;
    p = p * z + 0.28550315f;
    p = p * z + 0.40000126f;
    p = p * z + 0.6666667f;

    /* the high part of ln 2 has 15 bits, so its product is exact */
    return n * 0.69314575f - ((half - (s * (half + p * z) + n * 1.4286068e-06f)) - f);
}
