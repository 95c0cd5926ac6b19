/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"

float ferrule_expm1f(float x)
{
    if (x != x || x == 0.0f) {
        return x;
    }
    if (x < -17.5f) { /* e^x is below half an ULP of the result */
        return -1.0f;
    }

    int32_t n;
    float p = ferrule_exponential_part(x, -0.5f, &n);

    if (n == 0) {
        return p;
    }

    float scale = ferrule_power_of_two(n);

    return (scale - 1.0f) + scale * p;
}
