/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of the elementwise kernels, for one of them at a time. Its source defines, and
 * then includes this:
 *
 * FERRULE_KERNEL         its name
 * FERRULE_INPUTS         1, or 2 that broadcast
 * FERRULE_PARAMS         the tag of its parameters
 * FERRULE_FIRST          the type of the first input's elements
 * FERRULE_SECOND         that of the second input's
 * FERRULE_OUTPUT         that of the output's
 * FERRULE_RESULT(x[, y]) the result of one element of each input; may read `params`, and each
 *                        element as often as it likes
 * FERRULE_LOCALS         if need be: declarations in front of the loops
 * FERRULE_SHAPE          if need be: how the inputs broadcast, by default `&params->shape`
 *
 * A kernel reads each element before it writes the one at the same place, and none after that.
 */
#include "ferrule/kernels/broadcast.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_INPUTS)
#error "define what this file names at its top"
#endif

#ifndef FERRULE_LOCALS
#define FERRULE_LOCALS
#endif

#if FERRULE_INPUTS == 2

#ifndef FERRULE_SHAPE
#define FERRULE_SHAPE (&params->shape)
#endif

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_FIRST *first,
                    const FERRULE_SECOND *second, FERRULE_OUTPUT *output)
{
    const int32_t extent = FERRULE_SHAPE->extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = FERRULE_SHAPE->first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = FERRULE_SHAPE->second_strides[FERRULE_BROADCAST_INNER];
    FERRULE_LOCALS
    struct ferrule_broadcast_row row = {0};

    do {
        const FERRULE_FIRST *a = &first[row.first];
        const FERRULE_SECOND *b = &second[row.second];

        for (int32_t i = 0; i < extent; ++i) {
            *output++ = FERRULE_RESULT(*a, *b);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(FERRULE_SHAPE, &row));
}

#else

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_FIRST *input,
                    FERRULE_OUTPUT *output)
{
    FERRULE_LOCALS
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        const FERRULE_FIRST x = input[i];

        output[i] = FERRULE_RESULT(x);
    }
}

#endif
