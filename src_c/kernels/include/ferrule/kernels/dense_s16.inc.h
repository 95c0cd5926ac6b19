/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an elementwise kernel of two int16 inputs that has a faster way for rows whose
 * elements are adjacent in both. A kernel's source file defines these macros, then includes this
 * file:
 *
 * FERRULE_KERNEL       name of the kernel
 * FERRULE_PARAMS       struct tag of the parameters
 * FERRULE_LOCALS       declarations before the loops
 * FERRULE_RESULT(x, y) the result for one element of each input
 * FERRULE_DENSE(first, second, output, count) computes elements of a row from its start, and
 *                      returns their number
 *
 * A kernel reads each element before it writes the element at the same position, and never after.
 */
#include "ferrule/kernels/broadcast.h"

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const int16_t *first,
                    const int16_t *second, int16_t *output)
{
    const struct ferrule_broadcast *shape = &params->shape;
    const int32_t extent = shape->extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = shape->first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = shape->second_strides[FERRULE_BROADCAST_INNER];
    FERRULE_LOCALS
    struct ferrule_broadcast_row row = {0};

    do {
        const int16_t *a = &first[row.first];
        const int16_t *b = &second[row.second];
        int32_t done = 0;

        if (first_stride == 1 && second_stride == 1) {
            done = FERRULE_DENSE(a, b, output, extent);
            a += done;
            b += done;
            output += done;
        }
        for (; done < extent; ++done) {
            *output++ = FERRULE_RESULT(*a, *b);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(shape, &row));
}
