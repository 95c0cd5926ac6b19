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
 * FERRULE_LANE(x, y)     optional, for float32: assembler for eight elements at a time, and
 * FERRULE_VECTOR(x, y)   FERRULE_TOTAL, see `ferrule/kernels/float_eights.inc.h`
 * FERRULE_CONSTANT       the second element of FERRULE_LANE in kernels of one input, by default 0
 * FERRULE_LIMIT(values, count, total)
 *                        optional: a call that completes the results if FERRULE_LANE was used
 *
 * A kernel reads each element before it writes the element at the same position, and never after.
 */
#include "ferrule/kernels/broadcast.h"
#ifdef FERRULE_LANE
#define FERRULE_EIGHTS store_eights
#include "ferrule/kernels/float_eights.inc.h"
#define FERRULE_BY_EIGHT FERRULE_HAS_VFP
#else
#define FERRULE_BY_EIGHT 0
#endif

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_INPUTS)
#error "define the macros listed at the top of this file"
#endif

#ifndef FERRULE_LOCALS
#define FERRULE_LOCALS
#endif

#ifndef FERRULE_CONSTANT
#define FERRULE_CONSTANT 0.0f
#endif

#ifndef FERRULE_LIMIT
#define FERRULE_LIMIT(values, count, total) (void)(values)
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
#if FERRULE_BY_EIGHT
    struct ferrule_eights eights = {
        .first_stride = first_stride, .second_stride = second_stride, .output = output};
    const bool is_adjacent =
        extent >= FERRULE_EIGHT && ((uint32_t)first_stride | (uint32_t)second_stride) == 1;
    float *results = output;
#endif

    do {
        const FERRULE_FIRST *a = &first[row.first];
        const FERRULE_SECOND *b = &second[row.second];
        int32_t left = extent;

#if FERRULE_BY_EIGHT
        if (is_adjacent) {
            eights.first = a;
            eights.second = b;
            eights.count = extent;
            store_eights(&eights);
            left = eights.count;
            a += (extent - left) * first_stride;
            b += (extent - left) * second_stride;
            output = eights.output;
            eights.output += left;
        }
#endif
        for (; left > 0; --left) {
            *output++ = FERRULE_RESULT(*a, *b);
            a += first_stride;
            b += second_stride;
        }
    } while (ferrule_broadcast_next(FERRULE_SHAPE, &row));
#if FERRULE_BY_EIGHT
    if (is_adjacent) {
        FERRULE_LIMIT(results, (int32_t)(output - results), eights.total);
    }
#endif
}

#else

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_FIRST *input,
                    FERRULE_OUTPUT *output)
{
    FERRULE_LOCALS
    const int32_t elements = params->elements;
    int32_t i = 0;

#if FERRULE_BY_EIGHT
    {
        const float constant = FERRULE_CONSTANT;
        struct ferrule_eights eights = {.first = input,
                                        .first_stride = 1,
                                        .second = &constant,
                                        .output = output,
                                        .count = elements};

        store_eights(&eights);
        i = elements - eights.count;
        FERRULE_LIMIT(output, i, eights.total);
    }
#endif
    for (; i < elements; ++i) {
        const FERRULE_FIRST x = input[i];

        output[i] = FERRULE_RESULT(x);
    }
}

#endif
