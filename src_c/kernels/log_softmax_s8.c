/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/inverse_sqrt.h"
#include "ferrule/kernels/normalize.h"
#include "ferrule/kernels/reciprocal.h"

static int32_t leading_zeros(int32_t value)
{
    int32_t zeros = 1;

    while (zeros < 32 && value < (int32_t)1 << 30) {
        value *= 2;
        ++zeros;
    }
    return zeros;
}

/* The natural logarithm in Q5 of x in Q12, for x >= 1: a power of 2 plus a rational function. The
 * constants are in Q0: the root of 1/2, its root, ln 2, and the coefficients. */
static int32_t logarithm(int32_t x)
{
    const int32_t half_root = 1518500250;
    const int32_t fourth_root = 1805811301;
    const int32_t quarter = (int32_t)1 << 23; /* in Q6 */
    int32_t zeros = leading_zeros(x);
    int32_t half_zeros = leading_zeros(ferrule_high_multiply(x, half_root)) - 1;
    int32_t scaled = ferrule_high_multiply(ferrule_saturated_shift(x, zeros - 1), half_root);
    int32_t fraction = ferrule_saturated_shift(scaled, 1);
    int32_t other = ferrule_saturated_shift(x, half_zeros);
    int32_t power = (12 - zeros) * ((int32_t)1 << 25) + quarter;
    int32_t other_power = (12 - half_zeros) * ((int32_t)1 << 25) - quarter;

    fraction = other < fraction ? other : fraction;
    power = other_power > power ? other_power : power;

    int32_t mean = (int32_t)(((int64_t)fraction + fourth_root + 1) >> 1);
    int32_t offset = 2 * (fraction - fourth_root);
    int32_t square = ferrule_high_multiply(offset, offset);
    int32_t numerator = ferrule_high_multiply(offset, fraction) +
                        ferrule_high_multiply(ferrule_high_multiply(offset, square), 117049297);
    int32_t sum = 1057819769 + offset + ferrule_high_multiply(square, 127690142);
    int32_t denominator =
        ferrule_high_multiply(mean, sum) + ferrule_high_multiply(offset, 638450708);
    int32_t quotient = ferrule_high_multiply(ferrule_divide_by_power(numerator, 6),
                                             ferrule_one_over_one_plus(denominator));

    return ferrule_saturated_shift(ferrule_high_multiply(power, 1488522236) + quotient, 1);
}

void ferrule_log_softmax_s8(const struct ferrule_log_softmax_s8_params *params, const int8_t *input,
                            int8_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        int32_t maximum = INT8_MIN;
        int32_t sum = 0; /* Q12 */

        for (int32_t i = 0; i < params->depth; ++i) {
            maximum = input[i] > maximum ? input[i] : maximum;
        }
        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t difference = maximum - input[i];
            int32_t exponential = difference < params->count ? params->exponentials[difference] : 0;
            sum += (int32_t)(((uint32_t)exponential + (1u << 11)) >> 12);
        }

        int32_t log_sum = logarithm(sum);
        int32_t least = ferrule_requantize(log_sum + INT32_MIN, params->reverse_multiplier,
                                           params->reverse_shift);

        least = least > params->least ? least : params->least;
        for (int32_t i = 0; i < params->depth; ++i) {
            int32_t difference = input[i] - maximum;
            int32_t result = INT8_MIN;

            if (difference > least) {
                int32_t fine = ferrule_requantize(difference, params->multiplier, params->shift);

                result = ferrule_divide_by_power(fine - log_sum, 22) + INT8_MAX;
                result = ferrule_clamp(result, INT8_MIN, INT8_MAX);
            }
            output[i] = (int8_t)result;
        }
        input += params->depth;
        output += params->depth;
    }
}
