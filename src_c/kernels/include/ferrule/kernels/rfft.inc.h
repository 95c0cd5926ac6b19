/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel for the spectrum of real samples. A kernel's source file defines
 * FERRULE_KERNEL, its name, and the macros of fft.inc.h, then includes this file.
 */
#include "ferrule/kernels/fft.inc.h"

/** Half of a sum; the sum of int16 is exact, that of int32 wraps. */
static inline FERRULE_ELEMENT half_sum(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
#if defined(FERRULE_FRACTION) && FERRULE_FRACTION == 15
    return (FERRULE_ELEMENT)(((int32_t)one + other) >> 1);
#else
    return half_of(sum_of(one, other));
#endif
}

static inline FERRULE_ELEMENT half_difference(FERRULE_ELEMENT one, FERRULE_ELEMENT other)
{
#if defined(FERRULE_FRACTION) && FERRULE_FRACTION == 15
    return (FERRULE_ELEMENT)(((int32_t)one - other) >> 1);
#else
    return half_of(difference_of(one, other));
#endif
}

/** Separate the transforms of the samples with even and with odd numbers. */
static void unpack(struct point *data, const struct point *factors, int32_t points)
{
    const struct point first = divided_point(data[0], 2);
    const struct point lowest = {sum_of(first.real, first.imaginary), (FERRULE_ELEMENT)0};
    const struct point highest = {difference_of(first.real, first.imaginary), (FERRULE_ELEMENT)0};

    data[0] = lowest;
    data[points] = highest;
    for (int32_t k = 1; k <= points / 2; ++k) {
        const struct point conjugate = {
            data[points - k].real, difference_of((FERRULE_ELEMENT)0, data[points - k].imaginary)};
        const struct point low = divided_point(data[k], 2);
        const struct point high = divided_point(conjugate, 2);
        const struct point even = plus(low, high);
        const struct point odd = times(minus(low, high), factors[k - 1]);
        const struct point near = {half_sum(even.real, odd.real),
                                   half_sum(even.imaginary, odd.imaginary)};
        const struct point far = {half_difference(even.real, odd.real),
                                  half_difference(odd.imaginary, even.imaginary)};

        data[k] = near;
        data[points - k] = far;
    }
}

void FERRULE_KERNEL(const struct ferrule_signal_fft_params *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    const struct point *factors = (const struct point *)params->factors;
    const struct point *real_factors = (const struct point *)params->real_factors;
    const int32_t points = params->points;
    const int32_t samples = params->samples;

    for (int32_t row = 0; row < params->rows; ++row) {
        struct point *data = (struct point *)output;
        struct order order;

        first_point(&order, points);
        for (int32_t i = 0; i < points; ++i) {
            const int32_t at = 2 * order.at;

            data[i].real = at < samples ? input[at] : (FERRULE_ELEMENT)0;
            data[i].imaginary = at + 1 < samples ? input[at + 1] : (FERRULE_ELEMENT)0;
            next_point(&order);
        }
        transform(&order, data, factors, points, false);
        unpack(data, real_factors, points);
        input += samples;
        output += 2 * (points + 1);
    }
}
