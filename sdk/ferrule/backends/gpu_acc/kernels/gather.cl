// SPDX-License-Identifier: Apache-2.0
// GATHER, GATHER_ND and EMBEDDING_LOOKUP: one output element per work item. An index out of range counts as the nearest
// one in range.

static int gathered_place(__constant const struct gather_parameters *p, __global const int *indices, int element)
{
    const int number = element / p->run;
    const int block = number / p->count;
    const int batch = block / p->outer;
    __global const int *index = indices + (batch * p->count + number - block * p->count) * p->depth;
    int place = block * p->block + element - number * p->run;
    for (int axis = 0; axis < p->depth; ++axis) {
        place += min(max(index[axis], 0), p->extents[axis] - 1) * p->strides[axis];
    }
    return place;
}

#define GATHER(name, type)                                                                                             \
    __kernel void name(__constant const struct gather_parameters *p, __global const type *data,                        \
                       __global const int *indices, __global type *output, const ulong4 starts)                        \
    {                                                                                                                  \
        data += starts.s0 / sizeof(*data);                                                                             \
        indices += starts.s1 / sizeof(*indices);                                                                       \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element < p->items) {                                                                                      \
            output[element] = data[gathered_place(p, indices, element)];                                               \
        }                                                                                                              \
    }

GATHER(gather_8, uchar)
GATHER(gather_16, ushort)
GATHER(gather_32, uint)
GATHER(gather_64, ulong)
