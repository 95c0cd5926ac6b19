/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a BATCH_MATMUL. A kernel's source file defines these macros, then includes this
 * file:
 *
 * FERRULE_KERNEL        name of the kernel
 * FERRULE_PARAMS        struct tag of the parameters
 * FERRULE_ELEMENT       element type
 * FERRULE_SUM           type of the sums
 * FERRULE_PRODUCT(a, b) the product of two elements
 * FERRULE_RESULT(sum)   the stored value of a sum
 * FERRULE_MULTIPLY      in place of the last three: a function that stores the product of two
 *                       matrices, and returns the place behind it
 */
#include "ferrule/kernels/batch_matmul.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

#ifndef FERRULE_MULTIPLY
#define FERRULE_MULTIPLY multiply

static FERRULE_ELEMENT *multiply(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *left,
                                 const FERRULE_ELEMENT *right, FERRULE_ELEMENT *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t left_depth = shape->left.depth;
    const int32_t right_depth = shape->right.depth;

    for (int32_t i = 0; i < shape->rows; ++i) {
        for (int32_t j = 0; j < shape->columns; ++j) {
            const FERRULE_ELEMENT *row = left + i * shape->left.line;
            const FERRULE_ELEMENT *column = right + j * shape->right.line;
            FERRULE_SUM sum = 0;

            for (int32_t k = 0; k < shape->depth; ++k) {
                sum += FERRULE_PRODUCT(row[k * left_depth], column[k * right_depth]);
            }
            *output++ = FERRULE_RESULT(sum);
        }
    }
    return output;
}

#endif

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *left,
                    const FERRULE_ELEMENT *right, FERRULE_ELEMENT *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t *at_left = shape->left.batches;
    const int32_t *at_right = shape->right.batches;

    for (int32_t i = 0; i < shape->batches[0]; ++i) {
        for (int32_t j = 0; j < shape->batches[1]; ++j) {
            for (int32_t k = 0; k < shape->batches[2]; ++k) {
                output = FERRULE_MULTIPLY(
                    params, left + i * at_left[0] + j * at_left[1] + k * at_left[2],
                    right + i * at_right[0] + j * at_right[1] + k * at_right[2], output);
            }
        }
    }
}
