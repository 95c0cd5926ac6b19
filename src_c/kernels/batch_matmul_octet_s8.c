/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/multiply.h"

/* Columns of the right matrix. */
struct columns {
    const int8_t *data;
    const int32_t *bias; /* null means none */
    int32_t count;       /* at least 1 */
};

/* Pack the bytes of up to eight columns, zeros for those that do not exist, and their biases. */
static void pack(const struct ferrule_batch_matmul_tile_s8_params *params,
                 const struct columns *columns, int8_t *packed, int32_t *biases)
{
    const struct ferrule_batch_matmul_strides *right = &params->shape.right;
    const int32_t depth = params->shape.depth;
    const int32_t both = depth * params->left_zero_point * params->right_zero_point;

    for (int32_t c = 0; c < FERRULE_OCTET; ++c) {
        int8_t *target = packed + c;
        int32_t sum = 0;

        if (c >= columns->count) {
            for (int32_t k = 0; k < depth; ++k) {
                target[FERRULE_OCTET * k] = 0;
            }
            continue;
        }
        const int8_t *data = columns->data + c * right->line;
        for (int32_t k = depth; k > 0; --k) {
            *target = *data;
            sum += *data;
            target += FERRULE_OCTET;
            data += right->depth;
        }
        biases[c] = both - params->left_zero_point * sum;
        if (columns->bias != NULL) {
            biases[c] += columns->bias[c];
        }
    }
}

/* Return what a row adds to all sums because of the right zero point. */
static int32_t row_term(const struct ferrule_batch_matmul_tile_s8_params *params, const int8_t *row)
{
    int32_t sum = 0;

    if (params->right_zero_point == 0) {
        return 0;
    }
    for (int32_t k = params->shape.depth; k > 0; --k) {
        sum += *row++;
    }
    return -params->right_zero_point * sum;
}

static void multiply_row(const struct ferrule_batch_matmul_tile_s8_params *params,
                         const int8_t *row, const int8_t *packed, const int32_t *biases,
                         int32_t columns, int8_t *output)
{
    const int32_t term = row_term(params, row);

    for (int32_t left = columns; left > 0; left -= FERRULE_OCTET) {
        int32_t sums[FERRULE_OCTET];
        int32_t count = left < FERRULE_OCTET ? left : FERRULE_OCTET;

        ferrule_multiply_octet(row, packed, params->shape.depth, sums);
        for (int32_t c = 0; c < count; ++c) {
            sums[c] += biases[c] + term;
        }
        params->store(sums, count, params->scale, output, 1, &params->output);
        packed += FERRULE_OCTET * params->shape.depth;
        biases += FERRULE_OCTET;
        output += count;
    }
}

/* All rows of a matrix times some columns. */
static void multiply_tile(const struct ferrule_batch_matmul_tile_s8_params *params,
                          const int8_t *left, const struct columns *columns, int8_t *output,
                          int32_t *biases)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    int8_t *packed = (int8_t *)(biases + params->tile_columns);
    int8_t *copied = packed + params->tile_columns * shape->depth;

    for (int32_t c = 0; c < columns->count; c += FERRULE_OCTET) {
        struct columns octet = {columns->data + c * shape->right.line,
                                columns->bias == NULL ? NULL : columns->bias + c,
                                columns->count - c};

        pack(params, &octet, packed + c * shape->depth, biases + c);
    }
    for (int32_t i = 0; i < shape->rows; ++i) {
        const int8_t *row = left + i * shape->left.line;

        if (shape->left.depth != 1) {
            for (int32_t k = 0; k < shape->depth; ++k) {
                copied[k] = row[k * shape->left.depth];
            }
            row = copied;
        }
        multiply_row(params, row, packed, biases, columns->count, output);
        output += shape->columns;
    }
}

static void multiply(const struct ferrule_batch_matmul_tile_s8_params *params, const int8_t *left,
                     const int8_t *right, int8_t *output, void *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;

    for (int32_t first = 0; first < shape->columns; first += params->tile_columns) {
        int32_t count = shape->columns - first;
        struct columns columns = {right + first * shape->right.line,
                                  params->bias == NULL ? NULL : params->bias + first,
                                  count < params->tile_columns ? count : params->tile_columns};

        multiply_tile(params, left, &columns, output + first, scratch);
    }
}

void ferrule_batch_matmul_octet_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                   const int8_t *left, const int8_t *right, int8_t *output,
                                   void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
