/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a CAST kernel. A kernel's source file defines these macros, then includes this
 * file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_FIRST     element type of the input
 * FERRULE_OUTPUT    element type of the output
 * FERRULE_RESULT(x) the result for one element; may evaluate it more than once
 */
#include <stdbool.h>

#include "ferrule/kernels/cast.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_RESULT)
#error "define the macros listed at the top of this file"
#endif

void FERRULE_KERNEL(const struct ferrule_cast_params *params, const void *input, void *output)
{
    const FERRULE_FIRST *from = (const FERRULE_FIRST *)input;
    FERRULE_OUTPUT *to = (FERRULE_OUTPUT *)output;
    const int32_t elements = params->elements;

    for (int32_t i = 0; i < elements; ++i) {
        const FERRULE_FIRST x = from[i];

        to[i] = FERRULE_RESULT(x);
    }
}
