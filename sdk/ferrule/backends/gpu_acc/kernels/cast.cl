// SPDX-License-Identifier: Apache-2.0
// CAST: one element per work item. Integers wrap; floats are cut towards zero and saturate, and NaN becomes 0.

static long integer_at(int type, __global const uchar *data, int element)
{
    switch (type) {
    case TYPE_INT8:
        return ((__global const char *)data)[element];
    case TYPE_INT16:
        return ((__global const short *)data)[element];
    case TYPE_INT32:
        return ((__global const int *)data)[element];
    case TYPE_INT64:
        return ((__global const long *)data)[element];
    default:
        return data[element];
    }
}

static long cut(int type, float x)
{
    if (isnan(x)) {
        return 0;
    }
    switch (type) {
    case TYPE_INT8:
        return convert_char_sat_rtz(x);
    case TYPE_INT16:
        return convert_short_sat_rtz(x);
    case TYPE_INT32:
        return convert_int_sat_rtz(x);
    case TYPE_INT64:
        return convert_long_sat_rtz(x);
    default:
        return convert_uchar_sat_rtz(x);
    }
}

__kernel void cast(__constant const struct elementwise_parameters *p, __global const uchar *input,
                   __global uchar *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const bool is_float = p->input_type == TYPE_FLOAT32;
    const float real = is_float ? ((__global const float *)input)[element] : 0.0f;
    const long whole = is_float ? cut(p->output_type, real) : integer_at(p->input_type, input, element);
    switch (p->output_type) {
    case TYPE_FLOAT32:
        ((__global float *)output)[element] = is_float ? real : convert_float(whole);
        break;
    case TYPE_INT16:
        ((__global short *)output)[element] = (short)whole;
        break;
    case TYPE_INT32:
        ((__global int *)output)[element] = (int)whole;
        break;
    case TYPE_INT64:
        ((__global long *)output)[element] = whole;
        break;
    case TYPE_BOOL:
        output[element] = is_float ? real != 0.0f : whole != 0;
        break;
    default:
        output[element] = (uchar)whole;
        break;
    }
}
