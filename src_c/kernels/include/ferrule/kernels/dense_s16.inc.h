/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an elementwise kernel of two int16 inputs that has a faster way for rows whose
 * elements are adjacent in both, or in one while the other has a single element. A kernel's source
 * file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL       name of the kernel
 * FERRULE_PARAMS       struct tag of the parameters
 * FERRULE_SHAPE        optional: the broadcast of the inputs, by default `&params->shape`
 * FERRULE_LOCALS       declarations before the loops
 * FERRULE_RESULT(x, y) the result for one element of each input
 * FERRULE_DENSE(first, second, output, count) computes elements of a row from its start, and
 *                      returns their number
 *
 * A kernel reads each element before it writes the element at the same position, and never after.
 */
#include "ferrule/kernels/broadcast.h"

#ifndef FERRULE_SHAPE
#define FERRULE_SHAPE (&params->shape)
#endif

enum { REPEATED = 32 /* copies of a single element for a row */ };

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const int16_t *first,
                    const int16_t *second, int16_t *output)
{
    const struct ferrule_broadcast *shape = FERRULE_SHAPE;
    const int32_t extent = shape->extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = shape->first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = shape->second_strides[FERRULE_BROADCAST_INNER];
    const bool is_single = first_stride + second_stride == 1 && extent > 3;
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
        } else if (is_single) {
            const int32_t most = extent < REPEATED ? extent : REPEATED;
            int16_t repeated[REPEATED];
            int32_t more = most;

            for (int32_t i = 0; i < most; ++i) {
                repeated[i] = first_stride == 0 ? *a : *b;
            }
            while (more > 0 && done < extent) {
                more = FERRULE_DENSE(first_stride == 0 ? repeated : a,
                                     second_stride == 0 ? repeated : b, output,
                                     extent - done < most ? extent - done : most);
                a += more * first_stride;
                b += more * second_stride;
                output += more;
                done += more;
            }
        }
        for (; done < extent; ++done) {
            *output++ = FERRULE_RESULT(*a, *b);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(shape, &row));
}
