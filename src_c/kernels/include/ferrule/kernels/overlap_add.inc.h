/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel that adds overlapping frames. A kernel's source file defines these
 * macros, then includes this file:
 *
 * FERRULE_KERNEL     name of the kernel
 * FERRULE_ELEMENT    element type
 * FERRULE_SUM(a, b)  the sum of two elements
 */
#include "ferrule/kernels/signal.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT) || !defined(FERRULE_SUM)
#error "define the macros listed at the top of this file"
#endif

void FERRULE_KERNEL(const struct ferrule_signal_overlap_add_params *params,
                    const FERRULE_ELEMENT *input, const FERRULE_ELEMENT *sums,
                    FERRULE_ELEMENT *output, FERRULE_ELEMENT *next)
{
    const int32_t size = params->size;
    const int32_t step = params->step;

    for (int32_t row = 0; row < params->rows; ++row) {
        const FERRULE_ELEMENT *from = sums;

        for (int32_t frame = 0; frame < params->frames; ++frame) {
            for (int32_t i = 0; i < step; ++i) {
                *output++ = FERRULE_SUM(from[i], input[i]);
            }
            for (int32_t i = step; i < size; ++i) {
                next[i - step] = FERRULE_SUM(from[i], input[i]);
            }
            for (int32_t i = size - step; i < size; ++i) {
                next[i] = (FERRULE_ELEMENT)0;
            }
            input += size;
            from = next;
        }
        sums += size;
        next += size;
    }
}
