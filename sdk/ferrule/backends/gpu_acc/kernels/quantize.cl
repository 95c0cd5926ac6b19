// SPDX-License-Identifier: Apache-2.0
// QUANTIZE from float32: one element per work item. The quotient of two float32 numbers, rounded to float64 and then to
// float32, is correctly rounded; OpenCL's float32 division is not guaranteed to be.

#ifdef cl_khr_fp64
__kernel void quantize_f32_s8(__constant const struct elementwise_parameters *p, __global const float *input,
                              __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const float steps = convert_float((double)input[element] / (double)as_float(p->factor));
    // halves are rounded away from zero; NaN becomes the zero point
    const double moved = (isnan(steps) ? 0.0 : (double)round(steps)) + p->zero_point;
    output[element] = (char)min(max(moved, -128.0), 127.0);
}
#endif
