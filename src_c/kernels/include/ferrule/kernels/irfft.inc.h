/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel for the real samples of a spectrum. A kernel's source file defines
 * FERRULE_KERNEL, its name, and the macros of fft.inc.h, then includes this file.
 */
#include "ferrule/kernels/fft.inc.h"

/** Return a point of the complex spectrum that packs the samples with even and odd numbers. */
static struct point packed(const struct point *spectrum, const struct point *factors,
                           int32_t points, int32_t number)
{
    if (number == 0) {
        const struct point first = {sum_of(spectrum[0].real, spectrum[points].real),
                                    difference_of(spectrum[0].real, spectrum[points].real)};

        return divided_point(first, 2);
    }

    const bool is_far = 2 * number >= points;
    const int32_t k = is_far ? points - number : number;
    const struct point conjugate = {
        spectrum[points - k].real,
        difference_of((FERRULE_ELEMENT)0, spectrum[points - k].imaginary)};
    const struct point low = divided_point(spectrum[k], 2);
    const struct point high = divided_point(conjugate, 2);
    const struct point even = plus(low, high);
    const struct point odd = times(minus(low, high), factors[k - 1]);

    if (!is_far) {
        return plus(even, odd);
    }

    const struct point far = {difference_of(even.real, odd.real),
                              difference_of(odd.imaginary, even.imaginary)};

    return far;
}

void FERRULE_KERNEL(const struct ferrule_signal_fft_params *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    const struct point *factors = (const struct point *)params->factors;
    const struct point *real_factors = (const struct point *)params->real_factors;
    const int32_t points = params->points;

    for (int32_t row = 0; row < params->rows; ++row) {
        const struct point *spectrum = (const struct point *)(const void *)input;
        struct point *data = (struct point *)output;
        struct order order;

        first_point(&order, points);
        for (int32_t i = 0; i < points; ++i) {
            data[i] = packed(spectrum, real_factors, points, order.at);
            next_point(&order);
        }
        transform(&order, data, factors, points, true);
#if !defined(FERRULE_FRACTION)
        for (int32_t i = 0; i < 2 * points; ++i) {
            output[i] /= (float)(2 * points);
        }
#endif
        input += 2 * (points + 1);
        output += 2 * points;
    }
}
