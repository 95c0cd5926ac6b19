/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of ferrule_expf and ferrule_tanhf, for loops that compute usual numbers without a
 * call. */
#ifndef FERRULE_KERNELS_EXPONENTIAL_H
#define FERRULE_KERNELS_EXPONENTIAL_H

#include <stdint.h>

#include "ferrule/kernels/math.h"

union ferrule_exponential_bits {
    uint32_t word;
    float value;
};

#define FERRULE_EXPONENTIAL_SIGN  0x80000000u
#define FERRULE_EXPONENTIAL_USUAL 0x42AE0000u /* the bits of 87 */

static inline float ferrule_power_of_two(int32_t exponent)
{
    union ferrule_exponential_bits bits;

    bits.word = ((uint32_t)exponent << 23) + (UINT32_C(127) << 23);
    return bits.value;
}

/* Return p of e^x = (1 + p) 2^n; `half` is 0.5 with the sign of x. */
static inline float ferrule_exponential_part(float x, float half, int32_t *n)
{
    /* x = n ln 2 + r with |r| <= ln 2 / 2; the high part of ln 2 has 15 bits, so its product is
     * exact */
    *n = (int32_t)(x * 1.442695f + half);
    float high = x - (float)*n * 0.69314575f;
    float low = (float)*n * 1.4286068e-06f;
    float r = high - low;

    /* exp r = 1 + r + r^2 (1/2 + ...), fitted to 2^-27 over the interval */
    float p = 0.0013947239f;
    p = p * r + 0.008369794f;
    p = p * r + 0.041666254f;
    p = p * r + 0.1666651f;
    p = p * r + 0.5f;
    p = p * (r * r) + ((high - r) - low); /* adds the rounding error of r */
    return p + r;
}

/* Return ferrule_expf(x) if |x| <= 87: 2^n and the result are normal numbers. */
static inline float ferrule_usual_exponential(float x, float half)
{
    int32_t n;
    float p = ferrule_exponential_part(x, half, &n);

    return (1.0f + p) * ferrule_power_of_two(n);
}

/* Return ferrule_expf((value - maximum) * beta). */
static inline float ferrule_exponential_below(float value, float maximum, float beta)
{
    union ferrule_exponential_bits drop = {.value = (maximum - value) * beta};

    if (drop.word > FERRULE_EXPONENTIAL_USUAL) {
        return ferrule_expf((value - maximum) * beta);
    }
    return ferrule_usual_exponential(-drop.value, -0.5f);
}

/* Return ferrule_tanhf(x) if 1e-4 <= x <= 9.1. */
static inline float ferrule_usual_tanh(float x)
{
    if (x < 0.625f) {
        /* x + x^3 (-1/3 + ...), fitted to 2^-28 over the interval */
        float square = x * x;
        float p = 0.0021289666f;
        p = p * square - 0.008162834f;
        p = p * square + 0.021695152f;
        p = p * square - 0.053945825f;
        p = p * square + 0.133332f;
        p = p * square - 0.3333333f;
        return p * square * x + x;
    }
    return 1.0f - 2.0f / (ferrule_usual_exponential(2.0f * x, 0.5f) + 1.0f);
}

#endif
