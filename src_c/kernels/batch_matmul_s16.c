/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/batch_matmul.h"

static inline int16_t result(const struct ferrule_batch_matmul_int_params *params, int64_t sum)
{
    int32_t value = ferrule_requantize_wide(sum, params->multiplier, params->shift);

    return (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
}

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1

/* These cores have few registers, and no multiplication that adds to 64 bits. */
#define FERRULE_SUM           int64_t
#define FERRULE_PRODUCT(a, b) ((int32_t)(a) * (b))
#define FERRULE_RESULT(sum)   result(params, sum)

#else

/* Add up the products of a row and two columns, which may be the same. */
static inline void add_up(const int16_t *row, int32_t row_step, const int16_t *first,
                          const int16_t *second, int32_t step, int32_t depth, int64_t sums[2])
{
    int64_t one = 0;
    int64_t two = 0;

    for (int32_t k = depth; k > 0; --k) {
        one += (int64_t)*row * *first;
        two += (int64_t)*row * *second;
        row += row_step;
        first += step;
        second += step;
    }
    sums[0] = one;
    sums[1] = two;
}

/* The loops need all registers. */
__attribute__((noinline)) static void multiply_two(const struct ferrule_batch_matmul_shape *shape,
                                                   const int16_t *row, const int16_t *first,
                                                   const int16_t *second, int64_t sums[2])
{
    if (shape->left.depth == 1 && shape->right.depth == 1) {
        add_up(row, 1, first, second, 1, shape->depth, sums);
    } else {
        add_up(row, shape->left.depth, first, second, shape->right.depth, shape->depth, sums);
    }
}

static int16_t *multiply(const struct ferrule_batch_matmul_int_params *params, const int16_t *left,
                         const int16_t *right, int16_t *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;

    for (int32_t i = 0; i < shape->rows; ++i) {
        const int16_t *column = right;

        for (int32_t j = shape->columns; j > 0; j -= 2) {
            int64_t sums[2];

            multiply_two(shape, left, column, j > 1 ? column + shape->right.line : column, sums);
            *output++ = result(params, sums[0]);
            if (j > 1) {
                *output++ = result(params, sums[1]);
            }
            column += 2 * shape->right.line;
        }
        left += shape->left.line;
    }
    return output;
}

#define FERRULE_MULTIPLY multiply

#endif

#define FERRULE_KERNEL  ferrule_batch_matmul_s16
#define FERRULE_PARAMS  ferrule_batch_matmul_int_params
#define FERRULE_ELEMENT int16_t
#include "ferrule/kernels/batch_matmul.inc.h"
