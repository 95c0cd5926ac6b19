// SPDX-License-Identifier: Apache-2.0
// Functions of one int8 as tables of 256 values, which begin at -128: one element per work item.

__kernel void table_s8(__constant const struct elementwise_parameters *p, __global const char *table,
                       __global const char *input, __global char *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        output[element] = table[input[element] + 128];
    }
}

__kernel void table_s8_f32(__constant const struct elementwise_parameters *p, __global const float *table,
                           __global const char *input, __global float *output, const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        output[element] = table[input[element] + 128];
    }
}
