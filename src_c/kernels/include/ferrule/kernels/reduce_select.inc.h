/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a reduction that selects an element. A kernel's source file defines these
 * macros, then includes this file:
 *
 * FERRULE_KERNEL          name of the kernel
 * FERRULE_ELEMENT         element type
 * FERRULE_START           the result if no element is better
 * FERRULE_BETTER(x, best) whether an element replaces the best one before it
 */
#include "ferrule/kernels/reduce_select.h"
#include "ferrule/kernels/walk.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

static FERRULE_ELEMENT selected(const struct ferrule_reduce_loops *over,
                                const FERRULE_ELEMENT *input)
{
    const int32_t extent = over->extents[3];
    const int32_t stride = over->strides[3];
    struct ferrule_walk walk = {.offset = 0};
    FERRULE_ELEMENT best = FERRULE_START;

    do {
        const FERRULE_ELEMENT *element = input + walk.offset;

        for (int32_t i = 0; i < extent; ++i) {
            const FERRULE_ELEMENT x = element[i * stride];

            if (FERRULE_BETTER(x, best)) {
                best = x;
            }
        }
    } while (ferrule_walk_next(&walk, over, 3));
    return best;
}

void FERRULE_KERNEL(const struct ferrule_reduce_select_params *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    struct ferrule_walk walk = {.offset = 0};

    do {
        *output++ = selected(&params->reduced, input + walk.offset);
    } while (ferrule_walk_next(&walk, &params->kept, 4));
}
