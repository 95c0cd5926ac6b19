// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL, MAXIMUM and MINIMUM of tensors that broadcast: one element per work item.

// the indices of both inputs' elements for an output element
static int2 places(__constant const struct elementwise_parameters *p, int element)
{
    if (p->same_shape) {
        return (int2)(element);
    }
    int2 place = (int2)(0);
    for (int axis = 5; axis >= 0; --axis) {
        const int index = element % p->extents[axis];
        element /= p->extents[axis];
        place.x += index * p->first_strides[axis];
        place.y += index * p->second_strides[axis];
    }
    return place;
}

__kernel void sum_s8(__constant const struct elementwise_parameters *p, __global const char *first,
                     __global const char *second, __global char *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const int2 place = places(p, element);
    const int a = rescale((first[place.x] + p->first_offset) << p->left_shift, p->first_multiplier, p->first_shift);
    const int b = rescale((second[place.y] + p->second_offset) << p->left_shift, p->second_multiplier, p->second_shift);
    const int sum = p->subtract ? a - b : a + b;
    output[element] = store_s8(rescale(sum, p->multiplier, p->shift), p->zero_point, p->low, p->high);
}

__kernel void product_s8(__constant const struct elementwise_parameters *p, __global const char *first,
                         __global const char *second, __global char *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    const int2 place = places(p, element);
    const int product = (first[place.x] + p->first_offset) * (second[place.y] + p->second_offset);
    output[element] = store_s8(rescale(product, p->multiplier, p->shift), p->zero_point, p->low, p->high);
}

__kernel void maximum_s8(__constant const struct elementwise_parameters *p, __global const char *first,
                         __global const char *second, __global char *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        const int2 place = places(p, element);
        output[element] = max(first[place.x], second[place.y]);
    }
}

__kernel void minimum_s8(__constant const struct elementwise_parameters *p, __global const char *first,
                         __global const char *second, __global char *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        const int2 place = places(p, element);
        output[element] = min(first[place.x], second[place.y]);
    }
}
