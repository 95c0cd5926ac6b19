/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"

float ferrule_tanhf(float x)
{
    float magnitude = x < 0.0f ? -x : x;
    float result;

    if (magnitude < 1e-4f) { /* x^2 / 3 is below a quarter of an ULP; zeros keep their sign */
        return x;
    }
    if (magnitude < 0.625f) {
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
    if (magnitude > 9.1f) { /* 1 - tanh is below a quarter of an ULP */
        result = 1.0f;
    } else {
        result = 1.0f - 2.0f / (ferrule_expf(2.0f * magnitude) + 1.0f);
    }
    if (x < 0.0f) {
        return -result;
    }
    return x != x ? x : result;
}
