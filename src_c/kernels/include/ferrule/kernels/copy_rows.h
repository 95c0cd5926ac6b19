/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the rows of a copy; the caller loops over the innermost axis. */
#ifndef FERRULE_KERNELS_COPY_ROWS_H
#define FERRULE_KERNELS_COPY_ROWS_H

#include "ferrule/kernels/copy.h"

#include <stdbool.h>

#define FERRULE_COPY_INNER (FERRULE_COPY_AXES - 1)

struct ferrule_copy_row {
    int32_t input; /* where the row starts, in the unit of the strides */
    int32_t output;
    int32_t index[FERRULE_COPY_INNER];
};

static inline struct ferrule_copy_row
ferrule_copy_first_row(const struct ferrule_copy_params *params)
{
    struct ferrule_copy_row row = {params->input_offset, params->output_offset, {0}};
    return row;
}

/* Moves on to the next row; returns false after the last. */
static inline bool ferrule_copy_next_row(const struct ferrule_copy_params *params,
                                         struct ferrule_copy_row *row)
{
    for (int32_t axis = FERRULE_COPY_INNER - 1; axis >= params->first; --axis) {
        row->input += params->input_strides[axis];
        row->output += params->output_strides[axis];
        if (++row->index[axis] < params->extents[axis]) {
            return true;
        }
        row->input -= params->input_strides[axis] * params->extents[axis];
        row->output -= params->output_strides[axis] * params->extents[axis];
        row->index[axis] = 0;
    }
    return false;
}

#endif
