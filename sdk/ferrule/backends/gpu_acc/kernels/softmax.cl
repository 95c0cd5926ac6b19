// SPDX-License-Identifier: Apache-2.0
// SOFTMAX: one row per work item. exponentials: exp(-difference) in Q0.31 for differences of 0 to 255.
// See ferrule/operators/reductions/softmax.py and arithmetic/fixed_point_functions.py for the arithmetic.

static long wide_high_mul(long a, long b)
{
    return min((a * b + (1L << 30)) >> 31, (long)INT_MAX);
}

static long saturating_shift(long x, int bits)
{
    return min(max(x << bits, (long)INT_MIN), (long)INT_MAX);
}

// 1 / (1 + x) in Q0 for x in Q0: three steps of Newton and Raphson for 2 / (1 + x) in Q2
static long one_over_one_plus(long x)
{
    const long half_sum = (x + INT_MAX + 1) >> 1;
    long estimate = 1515870810L + wide_high_mul(half_sum, -1010580540L); // 48/17 and -32/17 in Q2
    for (int step = 0; step < 3; ++step) {
        const long error = (1L << 29) - wide_high_mul(half_sum, estimate);
        estimate += saturating_shift(wide_high_mul(estimate, error), 2);
    }
    return saturating_shift(estimate, 1);
}

__kernel void softmax_s8(__constant const struct row_parameters *p, __global const int *exponentials,
                         __global const char *input, __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int row = (int)get_global_id(0);
    if (row >= p->items) {
        return;
    }
    __global const char *source = input + row * p->length;
    __global char *target = output + row * p->length;
    int highest = source[0];
    for (int i = 1; i < p->length; ++i) {
        highest = max(highest, (int)source[i]);
    }
    uint total = 0;
    for (int i = 0; i < p->length; ++i) {
        total += (uint)rounding_divide(exponentials[highest - source[i]], 12);
    }
    const int headroom = (int)clz(total);
    const long scale = one_over_one_plus(((long)total << headroom) - (1L << 31));
    const int shift = 12 - headroom + 31 - 8;
    for (int i = 0; i < p->length; ++i) {
        const long share = rounding_divide(wide_high_mul(scale, exponentials[highest - source[i]]), shift);
        target[i] = (char)(min(max(share - 128, -128L), 127L));
    }
}
