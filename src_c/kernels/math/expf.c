/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/exponential.h"

float ferrule_expf(float x)
{
    if (x != x) {
        return x;
    }
    /* beyond these limits the result is infinite or 0, and the exponent below stays within 8 bits
     */
    x = x > 90.0f ? 90.0f : x;
    x = x < -110.0f ? -110.0f : x;

    int32_t n;
    float p = ferrule_exponential_part(x, x < 0.0f ? -0.5f : 0.5f, &n);

    /* two steps, because 2^n may lie outside the normal numbers; only the second step can round */
    int32_t half = n / 2;
    return (1.0f + p) * ferrule_power_of_two(half) * ferrule_power_of_two(n - half);
}
