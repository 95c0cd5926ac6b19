/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a CUMSUM. A kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL           name of the kernel
 * FERRULE_PARAMS           struct tag of the parameters
 * FERRULE_ELEMENT          element type
 * FERRULE_SUM              type of the sums
 * FERRULE_FIRST            the sum of no elements
 * FERRULE_NEXT(sum, x)     the sum with one more element
 * FERRULE_RESULT(sum)      the stored value of a sum
 */
#include "ferrule/kernels/cumsum.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    const struct ferrule_cumsum_shape *shape = &params->shape;
    const int32_t step = shape->reverse ? -shape->inner : shape->inner;

    for (int32_t i = 0; i < shape->outer; ++i) {
        for (int32_t j = 0; j < shape->inner; ++j) {
            int32_t place = i * shape->extent * shape->inner + j;
            FERRULE_SUM sum = FERRULE_FIRST;

            if (shape->reverse) {
                place += (shape->extent - 1) * shape->inner;
            }
            for (int32_t k = 0; k < shape->extent; ++k) {
                FERRULE_SUM next = FERRULE_NEXT(sum, input[place]);

                output[place] = FERRULE_RESULT(shape->exclusive ? sum : next);
                sum = next;
                place += step;
            }
        }
    }
}
