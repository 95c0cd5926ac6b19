// SPDX-License-Identifier: Apache-2.0
// Reductions: one output element per work item. bases: for each output element the index of its first input element;
// steps: the distances of the others from it, in the order of the reference.

// the value of a float32 in REDUCE_MAX and REDUCE_MIN: NaN and infinities of the wrong sign are never selected
static float selectable_f32(float x, int largest)
{
    const float limit = largest ? -FLT_MAX : FLT_MAX;
    return isnan(x) || (largest ? x < limit : x > limit) ? limit : x;
}

static char selectable_s8(char x, int largest)
{
    return x;
}

#define REDUCE(name, type, selectable)                                                                                 \
    __kernel void name(__constant const struct reduce_parameters *p, __global const int *bases,                        \
                       __global const int *steps, __global const type *input, __global type *output,                   \
                       const ulong4 starts)                                                                            \
    {                                                                                                                  \
        input += starts.s0 / sizeof(*input);                                                                           \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element >= p->items) {                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        __global const type *source = input + bases[element];                                                          \
        type found = selectable(source[steps[0]], p->largest);                                                         \
        for (int i = 1; i < p->count; ++i) {                                                                           \
            const type x = selectable(source[steps[i]], p->largest);                                                   \
            found = (p->largest ? x > found : x < found) ? x : found;                                                  \
        }                                                                                                              \
        output[element] = found;                                                                                       \
    }

REDUCE(reduce_s8, char, selectable_s8)
REDUCE(reduce_f32, float, selectable_f32)

// the first of equal elements; a NaN is selected only if it is the first element
#define SELECT_PLACE(name, type)                                                                                       \
    __kernel void name(__constant const struct reduce_parameters *p, __global const int *bases,                        \
                       __global const int *steps, __global const type *input, __global int *output,                    \
                       const ulong4 starts)                                                                            \
    {                                                                                                                  \
        input += starts.s0 / sizeof(*input);                                                                           \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element >= p->items) {                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        __global const type *source = input + bases[element];                                                          \
        int place = 0;                                                                                                 \
        for (int i = 1; i < p->count; ++i) {                                                                           \
            const type x = source[steps[i]], found = source[steps[place]];                                             \
            place = (p->largest ? x > found : x < found) ? i : place;                                                  \
        }                                                                                                              \
        output[element] = place;                                                                                       \
    }

SELECT_PLACE(place_s8, char)
SELECT_PLACE(place_f32, float)

// MEAN and SUM of int8; the sum wraps
__kernel void total_s8(__constant const struct reduce_parameters *p, __global const int *bases,
                       __global const int *steps, __global const char *input, __global char *output,
                       const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    uint total = (uint)p->offset;
    for (int i = 0; i < p->count; ++i) {
        total += (uint)input[bases[element] + steps[i]];
    }
    output[element] = store_s8(rescale((int)total, p->multiplier, p->shift), p->zero_point, CHAR_MIN, CHAR_MAX);
}

#ifdef cl_khr_fp64
// MEAN and SUM of float32
__kernel void total_f32(__constant const struct reduce_parameters *p, __global const int *bases,
                        __global const int *steps, __global const float *input, __global float *output,
                        const ulong4 starts)
{
    input += starts.s0 / sizeof(*input);
    output += starts.s3 / sizeof(*output);
    const int element = (int)get_global_id(0);
    if (element >= p->items) {
        return;
    }
    double total = 0.0;
    for (int i = 0; i < p->count; ++i) {
        total += input[bases[element] + steps[i]];
    }
    output[element] = convert_float(total / p->divisor);
}
#endif
