/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/dual.h"

static inline int16_t result(const struct ferrule_batch_matmul_int_params *params, int64_t sum)
{
    int32_t value = ferrule_requantize_wide(sum, params->multiplier, params->shift);

    value = ferrule_add_wrap(value, params->output_zero_point);
    return (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
}

/* The products of a row and a column from an element on. */
static int64_t sum_from(const struct ferrule_batch_matmul_shape *shape, const int16_t *row,
                        const int16_t *column, int32_t first)
{
    int64_t sum = 0;

    row += first * shape->left.depth;
    column += first * shape->right.depth;
    for (int32_t k = shape->depth - first; k > 0; --k) {
        sum += (int32_t)*row * *column;
        row += shape->left.depth;
        column += shape->right.depth;
    }
    return sum;
}

static inline uint32_t load_pair(const int16_t *source)
{
    uint32_t pair;
    FERRULE_COPY_WORD(&pair, source);
    return pair;
}

/* Add the products of a row and two columns, two at a time. Of rows and columns, the elements may
 * be adjacent; if those of columns are not, the columns are. */
static inline void add_pairs(const struct ferrule_batch_matmul_shape *shape, const int16_t *row,
                             const int16_t *column, bool whole_rows, bool whole_columns,
                             int64_t sums[2])
{
    const int32_t row_step = shape->left.depth;
    const int32_t step = shape->right.depth;
    const int16_t *other = column + shape->right.line;
    int64_t one = 0;
    int64_t two = 0;

    for (int32_t k = shape->depth / 2; k > 0; --k) {
        uint32_t pair = whole_rows ? load_pair(row) : ferrule_pair(row[0], row[row_step]);
        uint32_t a = load_pair(column);
        uint32_t b = load_pair(whole_columns ? other : column + step);

        one = ferrule_dual_multiply_add_long(
            pair, whole_columns ? a : ferrule_pair((int32_t)a, (int32_t)b), one);
        two = ferrule_dual_multiply_add_long(pair, whole_columns ? b : ferrule_high_halves(a, b),
                                             two);
        row += whole_rows ? 2 : 2 * row_step;
        column += whole_columns ? 2 : 2 * step;
        other += 2;
    }
    sums[0] = one;
    sums[1] = two;
}

/* The loops need all registers. */
__attribute__((noinline)) static void multiply_two(const struct ferrule_batch_matmul_shape *shape,
                                                   const int16_t *row, const int16_t *column,
                                                   int64_t sums[2])
{
    if (shape->left.depth != 1) {
        add_pairs(shape, row, column, false, shape->right.depth == 1, sums);
    } else if (shape->right.depth == 1) {
        add_pairs(shape, row, column, true, true, sums);
    } else {
        add_pairs(shape, row, column, true, false, sums);
    }
    if (shape->depth % 2 != 0) {
        sums[0] += sum_from(shape, row, column, shape->depth - 1);
        sums[1] += sum_from(shape, row, column + shape->right.line, shape->depth - 1);
    }
}

static int16_t *multiply(const struct ferrule_batch_matmul_int_params *params, const int16_t *left,
                         const int16_t *right, int16_t *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;

    for (int32_t i = 0; i < shape->rows; ++i) {
        const int16_t *row = left + i * shape->left.line;
        const int16_t *column = right;

        for (int32_t j = 1; j < shape->columns; j += 2) {
            int64_t sums[2];

            multiply_two(shape, row, column, sums);
            *output++ = result(params, sums[0]);
            *output++ = result(params, sums[1]);
            column += 2 * shape->right.line;
        }
        if (shape->columns % 2 != 0) {
            *output++ = result(params, sum_from(shape, row, column, 0));
        }
    }
    return output;
}

void ferrule_batch_matmul_s16(const struct ferrule_batch_matmul_int_params *params,
                              const int16_t *left, const int16_t *right, int16_t *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t *at_left = shape->left.batches;
    const int32_t *at_right = shape->right.batches;

    for (int32_t i = 0; i < shape->batches[0]; ++i) {
        for (int32_t j = 0; j < shape->batches[1]; ++j) {
            for (int32_t k = 0; k < shape->batches[2]; ++k) {
                output =
                    multiply(params, left + i * at_left[0] + j * at_left[1] + k * at_left[2],
                             right + i * at_right[0] + j * at_right[1] + k * at_right[2], output);
            }
        }
    }
}
