/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

union bits {
    uint32_t word;
    float value;
};

static float power_of_two(int32_t exponent)
{
    union bits bits;

    bits.word = (uint32_t)(exponent + 127) << 23;
    return bits.value;
}

float ferrule_expf(float x)
{
    if (x != x) {
        return x;
    }
    /* beyond these limits the result is infinite or 0, and the exponent below stays within 8 bits
     */
    x = x > 90.0f ? 90.0f : x;
    x = x < -110.0f ? -110.0f : x;

    /* x = n ln 2 + r with |r| <= ln 2 / 2; the high part of ln 2 has 15 bits, so its product is
     * exact */
    int32_t n = (int32_t)(x * 1.442695f + (x < 0.0f ? -0.5f : 0.5f));
    float high = x - (float)n * 0.69314575f;
    float low = (float)n * 1.4286068e-06f;
    float r = high - low;

    /* exp r = 1 + r + r^2 (1/2 + ...), fitted to 2^-27 over the interval */
    float p = 0.0013947239f;
    p = p * r + 0.008369794f;
    p = p * r + 0.041666254f;
    p = p * r + 0.1666651f;
    p = p * r + 0.5f;
    p = p * (r * r) + ((high - r) - low); /* adds the rounding error of r */
    p += r;

    /* two steps, because 2^n may lie outside the normal numbers; only the second step can round */
    int32_t half = n / 2;
    return (1.0f + p) * power_of_two(half) * power_of_two(n - half);
}
