/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The copies of elements. A source file defines FERRULE_KERNEL (its name), FERRULE_ELEMENT
 * (their type) and FERRULE_VECTORS (optional: returns whether it has copied a row, given `from`,
 * `to`, its extent and the strides), then includes this file.
 */
#include "ferrule/kernels/copy_rows.h"

#ifndef FERRULE_VECTORS
#define FERRULE_VECTORS(from, to, extent, input_stride, output_stride) false
#endif

/* Four at a time, since the strides are then offsets in registers. */
static void copy_row(const FERRULE_ELEMENT *from, FERRULE_ELEMENT *to, int32_t extent,
                     int32_t input_stride, int32_t output_stride)
{
    for (; extent > 3; extent -= 4) {
        to[0] = from[0];
        to[output_stride] = from[input_stride];
        to[2 * output_stride] = from[2 * input_stride];
        to[3 * output_stride] = from[3 * input_stride];
        from += 4 * input_stride;
        to += 4 * output_stride;
    }
    for (; extent > 0; --extent) {
        *to = *from;
        from += input_stride;
        to += output_stride;
    }
}

void FERRULE_KERNEL(const struct ferrule_copy_params *params, const void *input, void *output)
{
    const int32_t extent = params->extents[FERRULE_COPY_INNER];
    const int32_t input_stride = params->input_strides[FERRULE_COPY_INNER];
    const int32_t output_stride = params->output_strides[FERRULE_COPY_INNER];
    struct ferrule_copy_row row = ferrule_copy_first_row(params);

    do {
        const FERRULE_ELEMENT *from = (const FERRULE_ELEMENT *)input + row.input;
        FERRULE_ELEMENT *to = (FERRULE_ELEMENT *)output + row.output;

        if (!FERRULE_VECTORS(from, to, extent, input_stride, output_stride)) {
            copy_row(from, to, extent, input_stride, output_stride);
        }
    } while (ferrule_copy_next_row(params, &row));
}
