/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an elementwise kernel. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL         name of the kernel
 * FERRULE_INPUTS         1, or 2 with broadcasting
 * FERRULE_PARAMS         struct tag of the parameters
 * FERRULE_FIRST          element type of the first input
 * FERRULE_SECOND         element type of the second input
 * FERRULE_OUTPUT         element type of the output
 * FERRULE_RESULT(x[, y]) the result for one element of each input; may read `params`, and may
 *                        evaluate each element more than once
 * FERRULE_LOCALS         optional: declarations before the loops
 * FERRULE_SHAPE          optional: the broadcast of the inputs, by default `&params->shape`
 *
 * A kernel reads each element before it writes the element at the same position, and never after.
 */
#include "ferrule/kernels/broadcast.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_INPUTS)
#error "define the macros listed at the top of this file"
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
