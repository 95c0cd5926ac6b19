/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Two inputs of different shapes walked together, row by row of the output.
 *
 * The caller loops over the innermost axis; the output is dense.
 */
#ifndef FERRULE_KERNELS_BROADCAST_H_INCLUDED
#define FERRULE_KERNELS_BROADCAST_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>

#define FERRULE_BROADCAST_AXES  6
#define FERRULE_BROADCAST_INNER (FERRULE_BROADCAST_AXES - 1)

/** The output's shape and the strides of the inputs. */
struct ferrule_broadcast {
    int32_t extents[FERRULE_BROADCAST_AXES];        /**< outermost first, 1 where unused */
    int32_t first_strides[FERRULE_BROADCAST_AXES];  /**< in elements; 0 repeats the first input */
    int32_t second_strides[FERRULE_BROADCAST_AXES]; /**< in elements; 0 repeats the second input */
};

/** Position of a row; all zeros for the first row. */
struct ferrule_broadcast_row {
    int32_t first;  /**< elements from the first input's start */
    int32_t second; /**< elements from the second input's start */
    int32_t index[FERRULE_BROADCAST_INNER];
};

/** @brief Move on to the next row; return false after the last. */
static inline bool ferrule_broadcast_next(const struct ferrule_broadcast *shape,
                                          struct ferrule_broadcast_row *row)
{
    for (int32_t axis = FERRULE_BROADCAST_INNER - 1; axis >= 0; --axis) {
        row->first += shape->first_strides[axis];
        row->second += shape->second_strides[axis];
        if (++row->index[axis] < shape->extents[axis]) {
            return true;
        }
        row->first -= shape->first_strides[axis] * shape->extents[axis];
        row->second -= shape->second_strides[axis] * shape->extents[axis];
        row->index[axis] = 0;
    }
    return false;
}

#endif
