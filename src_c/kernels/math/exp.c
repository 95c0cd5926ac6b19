/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "ferrule/kernels/math.h"

union bits {
    uint64_t word;
    double value;
};

static double power_of_two(int32_t exponent)
{
    union bits bits;

    bits.word = (uint64_t)(uint32_t)(exponent + 1023) << 52;
    return bits.value;
}

double ferrule_exp(double x)
{
    /* 1 / k! for k = 13 to 2: the terms left out are below 2^-57 for |r| <= ln 2 / 2 */
    static const double factors[] = {
        1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
        2.7557319223985893e-06, 2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889,
        0.008333333333333333,   0.041666666666666664, 0.16666666666666666,   0.5,
    };

    if (x != x) {
        return x;
    }
    /* beyond these limits the result is infinite or 0, and the exponents below are those of normal
     * numbers */
    x = x > 720.0 ? 720.0 : x;
    x = x < -760.0 ? -760.0 : x;

    /* x = n ln 2 + r with |r| <= ln 2 / 2; the high part of ln 2 has 32 bits, so its product is
     * exact */
    int32_t n = (int32_t)(x * 1.4426950408889634 + (x < 0.0 ? -0.5 : 0.5));
    double high = x - (double)n * 0.6931471803691238;
    double low = (double)n * 1.9082149292705877e-10;
    double r = high - low;
    double p = factors[0];

    for (int32_t i = 1; i < (int32_t)(sizeof factors / sizeof factors[0]); ++i) {
        p = p * r + factors[i];
    }
    p = p * (r * r) + ((high - r) - low); /* adds the rounding error of r */
    p += r;

    /* two steps, because 2^n may lie outside the normal numbers; only the second step can round */
    int32_t half = n / 2;
    return (1.0 + p) * power_of_two(half) * power_of_two(n - half);
}
