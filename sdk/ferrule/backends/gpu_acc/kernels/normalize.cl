// SPDX-License-Identifier: Apache-2.0
// LOG_SOFTMAX and L2_NORMALIZATION, and SOFTMAX of float32: one row per work item.
// See ferrule/operators/arithmetic/fixed_point_functions.py for the arithmetic of int8.

// 1 / sqrt(x) = x / 2^(31 - y) for x >= 0; 0 counts as 1
static long2 inverse_sqrt(long x)
{
    if (x <= 1) {
        return (long2)(INT_MAX, 0);
    }
    const int divisions = (max(32 - (int)clz((uint)x), 29) - 28) / 2; // by 4, down to less than 2^29
    const long divided = x >> (2 * divisions);
    const int pairs = ((int)clz((uint)divided) - 1) / 2 - 1;
    const long half_value = divided << (2 * pairs) >> 1; // in Q3
    const long quarter = rounding_divide(half_value, 1);
    long estimate = 1L << 28;
    for (int step = 0; step < 5; ++step) { // Newton and Raphson
        const long square = wide_high_mul(estimate, estimate);
        const long cube = saturating_shift(wide_high_mul(square, estimate), 6);
        estimate = saturating_shift(wide_high_mul(3L << 27, estimate) - wide_high_mul(quarter, cube), 3);
    }
    const int shift = 11 + divisions - pairs;
    return (long2)(wide_high_mul(estimate, 1518500250L) << max(-shift, 0), -max(shift, 0));
}

__kernel void l2_normalization_s8(__constant const struct row_parameters *p, __global const char *input,
                                  __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int row = (int)get_global_id(0);
    if (row >= p->items) {
        return;
    }
    __global const char *source = input + row * p->length;
    long total = 0;
    for (int i = 0; i < p->length; ++i) {
        const int value = source[i] - p->zero_point;
        total += value * value;
    }
    const long2 inverse = inverse_sqrt(total);
    for (int i = 0; i < p->length; ++i) {
        const int scaled = rescale(source[i] - p->zero_point, (int)inverse.x, (int)inverse.y + 7);
        output[row * p->length + i] = (char)min(max(scaled, CHAR_MIN), CHAR_MAX);
    }
}

// the natural logarithm in Q5 of x in Q12, for x >= 1
static long logarithm(long x)
{
    const int zeros = (int)clz((uint)x), half_zeros = (int)clz((uint)wide_high_mul(x, 1518500250L)) - 1;
    const long scaled = wide_high_mul(saturating_shift(x, zeros - 1), 1518500250L);
    const long fraction = min(saturating_shift(scaled, 1), saturating_shift(x, half_zeros));
    const long quarter = 1L << 23; // in Q6, from here on
    const long power = max((long)(12 - zeros) * (1L << 25) + quarter, (long)(12 - half_zeros) * (1L << 25) - quarter);
    const long mean = (fraction + 1805811301L + 1) >> 1;
    const long offset = 2 * (fraction - 1805811301L);
    const long square = wide_high_mul(offset, offset);
    const long numerator =
        wide_high_mul(offset, fraction) + wide_high_mul(wide_high_mul(offset, square), 117049297L);
    const long sum = 1057819769L + offset + wide_high_mul(square, 127690142L);
    const long denominator = wide_high_mul(mean, sum) + wide_high_mul(offset, 638450708L);
    const long quotient = wide_high_mul(rounding_divide(numerator, 6), one_over_one_plus(denominator));
    return saturating_shift(wide_high_mul(power, 1488522236L) + quotient, 1);
}

// differences: for each difference from a row's maximum, 0 to 255, its exponential in Q12 and the difference in Q5
__kernel void log_softmax_s8(__constant const struct row_parameters *p, __global const int *differences,
                             __global const char *input, __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int row = (int)get_global_id(0);
    if (row >= p->items) {
        return;
    }
    __global const char *source = input + row * p->length;
    int highest = source[0];
    for (int i = 1; i < p->length; ++i) {
        highest = max(highest, (int)source[i]);
    }
    long total = 0;
    for (int i = 0; i < p->length; ++i) {
        total += differences[2 * (highest - source[i])];
    }
    const long log_of_total = logarithm(total);
    const int least = max(rescale((int)(log_of_total + INT_MIN), p->multiplier, p->shift), p->least);
    for (int i = 0; i < p->length; ++i) {
        const int difference = highest - source[i];
        const long result = rounding_divide(differences[2 * difference + 1] - log_of_total, 22) + 127;
        output[row * p->length + i] =
            -difference > least ? (char)min(max(result, (long)CHAR_MIN), (long)CHAR_MAX) : CHAR_MIN;
    }
}

#ifdef cl_khr_fp64
// scale: the bits of SOFTMAX's beta
__kernel void normalize_f32(__constant const struct row_parameters *p, __global const float *input,
                            __global float *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int row = (int)get_global_id(0);
    if (row >= p->items) {
        return;
    }
    __global const float *source = input + row * p->length;
    const double beta = as_float(p->scale);
    const bool by_norm = p->operation == LAYER_L2_NORMALIZATION;
    double highest = source[0];
    for (int i = 1; i < p->length; ++i) {
        highest = fmax(highest, (double)source[i]); // a NaN is in the total, too
    }
    double total = 0.0;
    for (int i = 0; i < p->length; ++i) {
        const double x = source[i];
        total += by_norm ? x * x : exp((x - highest) * beta);
    }
    const double divisor = by_norm ? fmax(sqrt(total), (double)1e-6f) : total;
    for (int i = 0; i < p->length; ++i) {
        const double x = source[i], difference = (x - highest) * beta;
        const double result = by_norm                             ? x / divisor
                              : p->operation == LAYER_LOG_SOFTMAX ? difference - log(divisor)
                                                                  : exp(difference) / divisor;
        output[row * p->length + i] = convert_float(result);
    }
}
#endif
