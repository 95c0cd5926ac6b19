// SPDX-License-Identifier: Apache-2.0
// The last argument of each kernel, starts, has the offsets in bytes of its tensors in their buffers: those of up to
// three inputs, and in s3 that of the output.
//
// The rounding of ferrule/operators/arithmetic/fixed_point.py. Right shifts of signed numbers keep the sign in OpenCL C.

// round(a * b / 2^31), halves up; saturates if both factors are -2^31
static int high_mul(int a, int b)
{
    return (int)min(((long)a * b + (1L << 30)) >> 31, (long)INT_MAX);
}

// round(x / 2^exponent), halves away from zero; the exponent is 0 to 62
static long rounding_divide(long x, int exponent)
{
    const long mask = (1L << exponent) - 1;
    const long threshold = (mask >> 1) + (x < 0);
    return (x >> exponent) + ((x & mask) > threshold);
}

// x * multiplier * 2^(shift - 31), rounded twice; a left shift wraps
static int rescale(int x, int multiplier, int shift)
{
    const int shifted = (int)((uint)x << max(shift, 0));
    const int right = max(-shift, 0);
    const int product = high_mul(shifted, multiplier);
    const int mask = (int)((1u << right) - 1u);
    const int threshold = (mask >> 1) + (product < 0);
    return (product >> right) + ((product & mask) > threshold);
}

// the stored value of a rescaled value; if low exceeds high, the result is high
static char store_s8(int scaled, int zero_point, int low, int high)
{
    const int moved = (int)((uint)scaled + (uint)zero_point);
    return (char)min(max(moved, low), high);
}

// a float32 within limits, which are the bits of float32; NaN stays
static float limited(float x, int low, int high)
{
    return x < as_float(low) ? as_float(low) : x > as_float(high) ? as_float(high) : x;
}
