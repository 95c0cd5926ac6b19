/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel that finds the index of an element. A kernel's source file defines
 * these macros, then includes this file:
 *
 * FERRULE_KERNEL          name of the kernel
 * FERRULE_ELEMENT         element type
 * FERRULE_BETTER(x, best) whether an element replaces the best one before it
 */
#include "ferrule/kernels/reduce_select.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

void FERRULE_KERNEL(const struct ferrule_arg_select_params *params, const FERRULE_ELEMENT *input,
                    int32_t *output)
{
    const int32_t extent = params->extent;
    const int32_t inner = params->inner;

    for (int32_t i = 0; i < params->outer; ++i) {
        for (int32_t j = 0; j < inner; ++j) {
            FERRULE_ELEMENT best = input[j];
            int32_t place = 0;

            for (int32_t k = 1; k < extent; ++k) {
                const FERRULE_ELEMENT x = input[k * inner + j];

                if (FERRULE_BETTER(x, best)) {
                    best = x;
                    place = k;
                }
            }
            *output++ = place;
        }
        input += extent * inner;
    }
}
