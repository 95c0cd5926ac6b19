/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/dual.h"

enum { WORD = 4, COLUMNS = 4 };

/* The loops need all registers; inlined, they would keep some of their values in memory. */
#define OUT_OF_LINE __attribute__((noinline))

/* Widen a row without its zero point: of each four elements, 0 and 2, then 1 and 3, if the products
 * of a column are adjacent; otherwise 0 and 1, then 2 and 3. Return what the right zero point
 * adds to the sums of all columns. */
static uint32_t widen_row(const struct ferrule_batch_matmul_tile_s8_params *params,
                          const int8_t *row, uint32_t *target)
{
    uint32_t sum = 0;
    const int32_t step = params->shape.left.depth;
    const uint32_t zero = ferrule_pair(-params->left_zero_point, -params->left_zero_point);
    const uint32_t missing = (uint32_t)(uint8_t)params->left_zero_point * UINT32_C(0x01010101);

    for (int32_t left = params->shape.depth; left > 0; left -= WORD) {
        uint32_t word = step == 1 && left >= WORD ? ferrule_load_word(row)
                                                  : ferrule_load_some(row, step, left, missing);
        uint32_t even = ferrule_add_even_bytes(zero, word);
        uint32_t odd = ferrule_add_odd_bytes(zero, word);

        if (params->shape.right.depth == 1) {
            target[0] = even;
            target[1] = odd;
        } else {
            target[0] = ferrule_pair((int32_t)even, (int32_t)odd);
            target[1] = ferrule_high_halves(even, odd);
        }
        sum = ferrule_dual_multiply_add(even, UINT32_C(0x00010001), sum);
        sum = ferrule_dual_multiply_add(odd, UINT32_C(0x00010001), sum);
        row += WORD * step;
        target += 2;
    }
    return 0u - (uint32_t)params->right_zero_point * sum;
}

/* Add the products of two columns that are adjacent to the first of the sums. */
OUT_OF_LINE static void multiply_along(const struct ferrule_batch_matmul_tile_s8_params *params,
                                       const uint32_t *row, const int8_t *first,
                                       const int8_t *second, int32_t *sums)
{
    const int32_t left = params->shape.depth % WORD;
    const int8_t *end = first + (params->shape.depth - left);
    uint32_t one = (uint32_t)sums[0];
    uint32_t other = (uint32_t)sums[0];

#define ADD_WORD(a, b)                                                                             \
    do {                                                                                           \
        uint32_t even = row[0];                                                                    \
        uint32_t odd = row[1];                                                                     \
                                                                                                   \
        one = ferrule_dual_multiply_add(even, ferrule_even_bytes(a), one);                         \
        one = ferrule_dual_multiply_add(odd, ferrule_odd_bytes(a), one);                           \
        other = ferrule_dual_multiply_add(even, ferrule_even_bytes(b), other);                     \
        other = ferrule_dual_multiply_add(odd, ferrule_odd_bytes(b), other);                       \
        row += 2;                                                                                  \
    } while (false)
    while (first != end) {
        uint32_t a = ferrule_load_word(first);
        uint32_t b = ferrule_load_word(second);

        first += WORD;
        second += WORD;
        ADD_WORD(a, b);
    }
    if (left > 0) { /* the row has zeros for the elements that do not exist */
        uint32_t a = ferrule_load_some(first, 1, left, 0);
        uint32_t b = ferrule_load_some(second, 1, left, 0);

        ADD_WORD(a, b);
    }
    sums[0] = (int32_t)one;
    sums[1] = (int32_t)other;
}

/* Add the products of four adjacent columns, of which some may not exist, to the first of the sums.
 */
OUT_OF_LINE static void multiply_across(const struct ferrule_batch_matmul_tile_s8_params *params,
                                        const uint32_t *row, const int8_t *data, int32_t columns,
                                        int32_t *sums)
{
    const int32_t step = params->shape.right.depth;
    int32_t left = params->shape.depth;
    uint32_t sum0 = (uint32_t)sums[0];
    uint32_t sum1 = sum0;
    uint32_t sum2 = sum0;
    uint32_t sum3 = sum0;

#define ADD_PAIR(a, b)                                                                             \
    do {                                                                                           \
        uint32_t pair = *row++;                                                                    \
        uint32_t a_even = ferrule_even_bytes(a);                                                   \
        uint32_t b_even = ferrule_even_bytes(b);                                                   \
        uint32_t a_odd = ferrule_odd_bytes(a);                                                     \
        uint32_t b_odd = ferrule_odd_bytes(b);                                                     \
                                                                                                   \
        sum0 =                                                                                     \
            ferrule_dual_multiply_add(pair, ferrule_pair((int32_t)a_even, (int32_t)b_even), sum0); \
        sum2 = ferrule_dual_multiply_add(pair, ferrule_high_halves(a_even, b_even), sum2);         \
        sum1 =                                                                                     \
            ferrule_dual_multiply_add(pair, ferrule_pair((int32_t)a_odd, (int32_t)b_odd), sum1);   \
        sum3 = ferrule_dual_multiply_add(pair, ferrule_high_halves(a_odd, b_odd), sum3);           \
        data += step;                                                                              \
    } while (false)
    if (columns >= COLUMNS) {
        for (; left > 1; left -= 2) {
            uint32_t a = ferrule_load_word(data);

            data += step;
            uint32_t b = ferrule_load_word(data);
            ADD_PAIR(a, b);
        }
    }
    for (; left > 0; left -= 2) { /* the row has a zero for an element that does not exist */
        uint32_t a = ferrule_load_some(data, 1, columns, 0);

        data += step;
        uint32_t b = left > 1 ? ferrule_load_some(data, 1, columns, 0) : 0;
        ADD_PAIR(a, b);
    }
    sums[0] = (int32_t)sum0;
    sums[1] = (int32_t)sum1;
    sums[2] = (int32_t)sum2;
    sums[3] = (int32_t)sum3;
}

static void multiply_row(const struct ferrule_batch_matmul_tile_s8_params *params,
                         const uint32_t *row, uint32_t start, const int8_t *right, int8_t *output)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const int32_t line = shape->right.line;

    for (int32_t first = 0; first < shape->columns; first += COLUMNS) {
        int32_t sums[COLUMNS];
        int32_t count = shape->columns - first;

        count = count < COLUMNS ? count : COLUMNS;
        sums[0] = (int32_t)start;
        sums[2] = (int32_t)start;
        if (shape->right.depth != 1) {
            multiply_across(params, row, right, count, sums);
        } else {
            for (int32_t c = 0; c < count; c += 2) {
                const int8_t *column = right + c * line;

                multiply_along(params, row, column, c + 1 < count ? column + line : column,
                               sums + c);
            }
        }
        for (int32_t c = 0; params->bias != NULL && c < count; ++c) {
            sums[c] += params->bias[first + c];
        }
        params->store(sums, count, params->scale, output, 1, &params->output);
        output += count;
        right += count * line;
    }
}

static void multiply(const struct ferrule_batch_matmul_tile_s8_params *params, const int8_t *left,
                     const int8_t *right, int8_t *output, void *scratch)
{
    for (int32_t i = 0; i < params->shape.rows; ++i) {
        uint32_t start = widen_row(params, left + i * params->shape.left.line, scratch);

        multiply_row(params, scratch, start, right, output);
        output += params->row_step;
    }
}

void ferrule_batch_matmul_direct_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                    const int8_t *left, const int8_t *right, int8_t *output,
                                    void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
