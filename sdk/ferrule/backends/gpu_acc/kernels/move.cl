// SPDX-License-Identifier: Apache-2.0
// Layers that move elements: one output element per work item. places: for each output element the number of its input
// element, counted from 1 through all inputs, or 0 for the fill. A kernel moves the elements of one input.

#define MOVE(name, type)                                                                                               \
    __kernel void name(__constant const struct move_parameters *p, __global const int *places,                         \
                       __global const type *input, __global type *output, const ulong4 starts)                         \
    {                                                                                                                  \
        input += starts.s0 / sizeof(*input);                                                                           \
        output += starts.s3 / sizeof(*output);                                                                         \
        const int element = (int)get_global_id(0);                                                                     \
        if (element >= p->items) {                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        const int place = places[element] - p->first;                                                                  \
        if (place >= 0 && place < p->count) {                                                                          \
            output[element] = input[place];                                                                            \
        } else if (p->fills && places[element] == 0) {                                                                 \
            output[element] = (type)((ulong)(uint)p->fill_high << 32 | (uint)p->fill_low);                             \
        }                                                                                                              \
    }

MOVE(move_8, uchar)
MOVE(move_16, ushort)
MOVE(move_32, uint)
MOVE(move_64, ulong)
