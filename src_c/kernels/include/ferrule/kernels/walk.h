/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over strided elements; internal to the kernels. */
#ifndef FERRULE_KERNELS_WALK_H
#define FERRULE_KERNELS_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/kernels/reduce.h"

struct ferrule_walk {
    int32_t index[4];
    int32_t offset; /* of the element at the index */
};

/* Advances the outermost `loops` loops; returns false when they are back at the start. */
static inline bool ferrule_walk_next(struct ferrule_walk *walk,
                                     const struct ferrule_reduce_loops *over, int32_t loops)
{
    for (int32_t i = loops - 1; i >= 0; --i) {
        walk->offset += over->strides[i];
        if (++walk->index[i] < over->extents[i]) {
            return true;
        }
        walk->offset -= over->extents[i] * over->strides[i];
        walk->index[i] = 0;
    }
    return false;
}

#endif
