/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

float ferrule_expm1f(float x)
{
    if (x != x || x == 0.0f) {
        return x;
    }
    if (x < -17.5f) { /* e^x is below half an ULP of the result */
        return -1.0f;
    }

    /* the reduction and the polynomial are those of ferrule_expf */
    int32_t n = (int32_t)(x * 1.442695f - 0.5f);
    float high = x - (float)n * 0.69314575f;
    float low = (float)n * 1.4286068e-06f;
    float r = high - low;
    float p = 0.0013947239f;
    p = p * r + 0.008369794f;
    p = p * r + 0.041666254f;
    p = p * r + 0.1666651f;
    p = p * r + 0.5f;
    p = p * (r * r) + ((high - r) - low);
    p += r;
    if (n == 0) {
        return p;
    }

    union {
        uint32_t word;
        float value;
    } scale = {.word = (uint32_t)(n + 127) << 23};

    return (scale.value - 1.0f) + scale.value * p;
}
