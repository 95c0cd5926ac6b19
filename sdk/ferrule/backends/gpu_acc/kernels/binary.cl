// SPDX-License-Identifier: Apache-2.0
// Functions of tensors that broadcast: one element per work item.

// results: of all pairs of 8-bit values; the index is 256 * first + second, both read as unsigned
__kernel void pairs_8(__constant const struct elementwise_parameters *p, __global const uchar *results,
                      __global const uchar *first, __global const uchar *second, __global uchar *output,
                      const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        const int2 place = places(p, element);
        output[element] = results[256 * first[place.x] + second[place.y]];
    }
}

// Integers wrap; a quotient or a remainder of 0 is 0.
static int binary_of(int operation, int a, int b)
{
    const uint difference = (uint)a - (uint)b;
    const long quotient = b == 0 ? 0 : (long)a / b;
    const long remainder = b == 0 ? 0 : (long)a % b;
    const bool between = remainder != 0 && (remainder < 0) != (b < 0);
    switch (operation) {
    case LAYER_ADD:
        return (int)((uint)a + (uint)b);
    case LAYER_SUB:
        return (int)difference;
    case LAYER_MUL:
        return (int)((uint)a * (uint)b);
    case LAYER_DIV:
        return (int)quotient;
    case LAYER_FLOOR_DIV:
        return (int)(quotient - between);
    case LAYER_FLOOR_MOD:
        return (int)(between ? remainder + b : remainder);
    case LAYER_SQUARED_DIFFERENCE:
        return (int)(difference * difference);
    case LAYER_BITWISE_XOR:
        return a ^ b;
    case LAYER_MAXIMUM:
        return max(a, b);
    default:
        return min(a, b);
    }
}

__kernel void binary_s32(__constant const struct elementwise_parameters *p, __global const int *first,
                         __global const int *second, __global int *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        const int2 place = places(p, element);
        output[element] = binary_of(p->operation, first[place.x], second[place.y]);
    }
}

#ifdef cl_khr_fp64
// float64 holds the results of two float32 values exactly or so finely that rounding them again is right
static float binary_float_of(int operation, double a, double b)
{
    switch (operation) {
    case LAYER_ADD:
    case LAYER_ADD_N:
        return convert_float(a + b);
    case LAYER_SUB:
        return convert_float(a - b);
    case LAYER_MUL:
        return convert_float(a * b);
    case LAYER_DIV:
        return convert_float(a / b);
    case LAYER_FLOOR_DIV:
        return convert_float(floor(a / b));
    case LAYER_FLOOR_MOD: {
        const double remainder = fmod(a, b);
        return convert_float(remainder != 0.0 && (b < 0.0) != (remainder < 0.0) ? remainder + b : remainder);
    }
    case LAYER_SQUARED_DIFFERENCE: {
        const double difference = convert_float(a - b);
        return convert_float(difference * difference);
    }
    case LAYER_PRELU:
        return convert_float(a >= 0.0 ? a : a * b);
    case LAYER_MAXIMUM:
        return convert_float(a > b ? a : b); // b if one of them is NaN
    default:
        return convert_float(a < b ? a : b);
    }
}

__kernel void binary_f32(__constant const struct elementwise_parameters *p, __global const float *first,
                         __global const float *second, __global float *output, const ulong4 starts)
{
    first += starts.s0 / sizeof(*first);
    second += starts.s1 / sizeof(*second);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element < p->items) {
        const int2 place = places(p, element);
        output[element] = limited(binary_float_of(p->operation, first[place.x], second[place.y]), p->low, p->high);
    }
}
#endif

// operation: the sum of the relations that are true; 1 less, 2 equal, 4 greater, 8 unordered
#define COMPARE(name, type)                                                                                            \
    __kernel void name(__constant const struct elementwise_parameters *p, __global const type *first,                  \
                       __global const type *second, __global uchar *output, const ulong4 starts)                       \
    {                                                                                                                  \
        first += starts.s0 / sizeof(*first);                                                                           \
        second += starts.s1 / sizeof(*second);                                                                         \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element < p->items) {                                                                                      \
            const int2 place = places(p, element);                                                                     \
            const type a = first[place.x], b = second[place.y];                                                        \
            const int relation = a < b ? 1 : a == b ? 2 : a > b ? 4 : 8;                                               \
            output[element] = (p->operation & relation) != 0;                                                          \
        }                                                                                                              \
    }

COMPARE(compare_f32, float)
COMPARE(compare_s32, int)
COMPARE(compare_s64, long)

// the index of an input's element for an output element
static int place_of(__constant const int *extents, __constant const int *strides, int element)
{
    int place = 0;
    for (int axis = 5; axis >= 0; --axis) {
        place += element % extents[axis] * strides[axis];
        element /= extents[axis];
    }
    return place;
}

#define SELECT(name, type)                                                                                             \
    __kernel void name(__constant const struct elementwise_parameters *p, __global const uchar *condition,             \
                       __global const type *first, __global const type *second, __global type *output,                 \
                       const ulong4 starts)                                                                            \
    {                                                                                                                  \
        condition += starts.s0 / sizeof(*condition);                                                                   \
        first += starts.s1 / sizeof(*first);                                                                           \
        second += starts.s2 / sizeof(*second);                                                                         \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element < p->items) {                                                                                      \
            output[element] = condition[place_of(p->extents, p->first_strides, element)]                               \
                                  ? first[place_of(p->extents, p->second_strides, element)]                            \
                                  : second[place_of(p->extents, p->third_strides, element)];                           \
        }                                                                                                              \
    }

SELECT(select_8, uchar)
SELECT(select_16, ushort)
SELECT(select_32, uint)
SELECT(select_64, ulong)
