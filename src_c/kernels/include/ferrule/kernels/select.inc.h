/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a SELECT_V2 kernel. A kernel's source file defines these macros, then includes
 * this file:
 *
 * FERRULE_KERNEL  name of the kernel
 * FERRULE_ELEMENT unsigned type with the size of the elements
 */
#include "ferrule/kernels/select.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

/* Moves three pointers on to the next row; returns false after the last row. */
static bool next_row(const struct ferrule_select_params *params, int32_t *index,
                     const bool **condition, const FERRULE_ELEMENT **first,
                     const FERRULE_ELEMENT **second)
{
    for (int32_t axis = FERRULE_SELECT_AXES - 2; axis >= 0; --axis) {
        int32_t steps = 1;
        bool more = ++index[axis] < params->extents[axis];

        if (!more) {
            steps -= params->extents[axis];
            index[axis] = 0;
        }
        *condition += steps * params->condition_strides[axis];
        *first += steps * params->first_strides[axis];
        *second += steps * params->second_strides[axis];
        if (more) {
            return true;
        }
    }
    return false;
}

void FERRULE_KERNEL(const struct ferrule_select_params *params, const void *condition,
                    const void *first, const void *second, void *output)
{
    const int32_t inner = FERRULE_SELECT_AXES - 1;
    const bool *row = (const bool *)condition;
    const FERRULE_ELEMENT *a = (const FERRULE_ELEMENT *)first;
    const FERRULE_ELEMENT *b = (const FERRULE_ELEMENT *)second;
    FERRULE_ELEMENT *to = (FERRULE_ELEMENT *)output;
    int32_t index[FERRULE_SELECT_AXES - 1] = {0};

    do {
        for (int32_t i = 0; i < params->extents[inner]; ++i) {
            *to++ = row[i * params->condition_strides[inner]]
                        ? a[i * params->first_strides[inner]]
                        : b[i * params->second_strides[inner]];
        }
    } while (next_row(params, index, &row, &a, &b));
}
