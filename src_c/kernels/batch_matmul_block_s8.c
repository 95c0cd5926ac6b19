/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/paired.h"

enum { COLUMNS = 4, PIXELS = 2, WORD = 4 };

/* A matrix of the right input, from the first column of a tile on. */
struct tile {
    const int8_t *data;
    const int32_t *bias;
    int32_t columns;
};

/* What a block's weights are made of. */
struct weights {
    uint32_t zero; /* added to widened bytes */
    uint32_t data; /* by which weights are multiplied in the bias */
    uint32_t kept; /* bits that a shift to the left leaves */
    int32_t shift;
    uint32_t missing; /* four products that weigh nothing */
};

static inline uint32_t even(const struct weights *weights, uint32_t word)
{
    return (ferrule_add_even_bytes(weights->zero, word) << weights->shift) & weights->kept;
}

static inline uint32_t odd(const struct weights *weights, uint32_t word)
{
    return (ferrule_add_odd_bytes(weights->zero, word) << weights->shift) & weights->kept;
}

/* Pack a column whose products are adjacent; return what it adds to the bias. */
static uint32_t pack_column(const struct ferrule_batch_matmul_tile_s8_params *params,
                            const struct weights *weights, const int8_t *data, uint32_t *target)
{
    const struct weights copy = *weights;
    uint32_t bias = 0;

    for (int32_t left = params->shape.depth; left > 0; left -= WORD) {
        uint32_t word =
            left >= WORD ? ferrule_load_word(data) : ferrule_load_some(data, 1, left, copy.missing);
        uint32_t first = even(&copy, word);
        uint32_t second = odd(&copy, word);

        target[0] = first;
        target[COLUMNS] = second;
        bias = ferrule_dual_multiply_add(first, copy.data, bias);
        bias = ferrule_dual_multiply_add(second, copy.data, bias);
        data += WORD;
        target += PIXELS * COLUMNS;
    }
    return bias;
}

/* Two products of four columns, from the halves of their rows. */
#define PACK_PAIR(first, second)                                                                   \
    do {                                                                                           \
        uint32_t first_even = even(&copy, first);                                                  \
        uint32_t second_even = even(&copy, second);                                                \
        uint32_t first_odd = odd(&copy, first);                                                    \
        uint32_t second_odd = odd(&copy, second);                                                  \
        uint32_t pair = ferrule_pair((int32_t)first_even, (int32_t)second_even);                   \
                                                                                                   \
        target[0] = pair;                                                                          \
        bias0 = ferrule_dual_multiply_add(pair, copy.data, bias0);                                 \
        pair = ferrule_pair((int32_t)first_odd, (int32_t)second_odd);                              \
        target[1] = pair;                                                                          \
        bias1 = ferrule_dual_multiply_add(pair, copy.data, bias1);                                 \
        pair = ferrule_high_halves(first_even, second_even);                                       \
        target[2] = pair;                                                                          \
        bias2 = ferrule_dual_multiply_add(pair, copy.data, bias2);                                 \
        pair = ferrule_high_halves(first_odd, second_odd);                                         \
        target[3] = pair;                                                                          \
        bias3 = ferrule_dual_multiply_add(pair, copy.data, bias3);                                 \
        target += COLUMNS;                                                                         \
    } while (false)

/* Pack four adjacent columns, of which some may not exist. */
static void pack_across(const struct ferrule_batch_matmul_tile_s8_params *params,
                        const struct weights *weights, const int8_t *data, int32_t columns,
                        uint32_t *bias, uint32_t *target)
{
    const struct weights copy = *weights;
    const int32_t step = params->shape.right.depth;
    int32_t left = params->shape.depth;
    uint32_t bias0 = bias[0];
    uint32_t bias1 = bias[1];
    uint32_t bias2 = bias[2];
    uint32_t bias3 = bias[3];

    for (; columns >= COLUMNS && left >= WORD; left -= WORD) {
        uint32_t row0 = ferrule_load_word(data);
        uint32_t row2 = ferrule_load_word(data + 2 * step);

        PACK_PAIR(row0, row2);
        data += step;
        row0 = ferrule_load_word(data);
        row2 = ferrule_load_word(data + 2 * step);
        PACK_PAIR(row0, row2);
        data += 3 * step;
    }
    for (; left > 0; left -= WORD) {
        uint32_t rows[WORD];

        for (int32_t i = 0; i < WORD; ++i) {
            rows[i] = i < left ? ferrule_load_some(data + i * step, 1, columns, copy.missing)
                               : copy.missing;
        }
        PACK_PAIR(rows[0], rows[2]);
        PACK_PAIR(rows[1], rows[3]);
        data += WORD * step;
    }
    bias[0] = bias0;
    bias[1] = bias1;
    bias[2] = bias2;
    bias[3] = bias3;
}

/* Pack whole blocks, in which columns that do not exist have any weights; return their end. */
static int32_t *pack(const struct ferrule_batch_matmul_tile_s8_params *params,
                     const struct tile *tile, int32_t *packed)
{
    const struct ferrule_batch_matmul_strides *right = &params->shape.right;
    const uint32_t missing = (uint32_t)(uint8_t)params->right_zero_point;
    const struct weights weights = {
        ferrule_pair(-params->right_zero_point, -params->right_zero_point),
        ferrule_pair(-params->left_zero_point, -params->left_zero_point),
        ~(((UINT32_C(1) << params->left_shift) - 1u) << 16), params->left_shift,
        missing * UINT32_C(0x01010101)};

    for (int32_t first = 0; first < tile->columns; first += COLUMNS) {
        uint32_t *bias = (uint32_t *)packed;
        uint32_t *target = bias + COLUMNS;
        const int8_t *data = tile->data + first * right->line;
        int32_t columns = tile->columns - first;

        for (int32_t c = 0; c < COLUMNS; ++c) {
            int32_t last = c < columns ? c : columns - 1;

            bias[c] = (uint32_t)params->start;
            if (tile->bias != NULL) {
                bias[c] += (uint32_t)tile->bias[first + last] << params->left_shift;
            }
            if (right->depth == 1) {
                bias[c] += pack_column(params, &weights, data + last * right->line, target + c);
            }
        }
        if (right->depth != 1) {
            pack_across(params, &weights, data, columns, bias, target);
        }
        packed += COLUMNS + PIXELS * COLUMNS * params->words;
        for (int32_t i = 0; i < params->constant_words; ++i) {
            *packed++ = params->constants[i];
        }
    }
    return packed;
}

/* Widen one row into the patches. */
static void gather(const struct ferrule_batch_matmul_tile_s8_params *params, const int8_t *row,
                   uint32_t *target)
{
    int32_t step = params->shape.left.depth;
    int32_t left = params->shape.depth;

    if (step == 1) {
        int32_t whole = left / WORD;

        ferrule_widen(row, whole, target, PIXELS * 2);
        row += WORD * whole;
        target += PIXELS * 2 * whole;
        left -= WORD * whole;
    }
    for (; left > 0; left -= WORD) {
        if (left >= WORD) {
            target[0] = ferrule_pair(row[0], row[2 * step]);
            target[PIXELS] = ferrule_pair(row[step], row[3 * step]);
        } else {
            uint32_t word = ferrule_load_some(row, step, left, 0);

            target[0] = ferrule_even_bytes(word);
            target[PIXELS] = ferrule_odd_bytes(word);
        }
        row += WORD * step;
        target += PIXELS * 2;
    }
}

static void store_sums(const struct ferrule_batch_matmul_tile_s8_params *params,
                       const int32_t *sums, int32_t columns, int8_t *first, int8_t *second)
{
    for (int32_t c = 0; c < columns; c += COLUMNS) {
        int32_t count = columns - c < COLUMNS ? columns - c : COLUMNS;

        params->store(sums + COLUMNS, count, params->scale, second + c * params->column_step,
                      params->column_step, &params->output);
        params->store(sums, count, params->scale, first + c * params->column_step,
                      params->column_step, &params->output);
        sums += PIXELS * COLUMNS;
    }
}

/* All rows of a matrix times the packed columns. */
static void multiply_rows(const struct ferrule_batch_matmul_tile_s8_params *params,
                          const struct ferrule_block *block, const int8_t *left, int32_t columns,
                          int8_t *output, uint32_t *patches)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    int32_t *sums = (int32_t *)(patches + 2 * PIXELS * params->words);
    bool direct = shape->left.depth == 1 && shape->depth % WORD == 0;
    int32_t together = direct && params->store == NULL ? shape->rows & ~1 : PIXELS;
    int32_t rows = shape->rows;

    while (rows > 0) {
        bool two = rows > 1;
        struct ferrule_block_pixels pixels = {
            .first = output,
            .second = output + (two ? params->row_step : 0),
            .pairs = 1,
        };
        int32_t count = rows < together || together == 0 ? (two ? PIXELS : 1) : together;

        if (direct) {
            pixels.source = left;
            pixels.step_bytes = two ? shape->left.line : 0;
            pixels.pairs = (count + 1) / PIXELS;
        } else {
            gather(params, left, patches);
            gather(params, left + (two ? shape->left.line : 0), patches + 1);
        }
        if (params->store != NULL) {
            int8_t *second = pixels.second;

            pixels.first = (int8_t *)sums;
            pixels.second = pixels.first;
            params->multiply(block, &pixels, patches);
            store_sums(params, sums, columns, output, second);
        } else {
            params->multiply(block, &pixels, patches);
        }
        left += count * shape->left.line;
        output += count * params->row_step;
        rows -= count;
    }
}

static void multiply(const struct ferrule_batch_matmul_tile_s8_params *params, const int8_t *left,
                     const int8_t *right, int8_t *output, void *scratch)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    uint32_t *patches = scratch;
    int32_t sum_words = params->store != NULL ? PIXELS * params->tile_columns : 0;
    int32_t *packed = (int32_t *)patches + 2 * PIXELS * params->words + sum_words;
    struct ferrule_block block = {.weights = packed,
                                  .words = params->words,
                                  .output_c = params->row_step,
                                  .store = params->multiply};

    for (int32_t first = 0; first < shape->columns;) {
        int32_t columns = shape->columns - first;

        columns = columns < params->tile_columns ? columns : params->tile_columns;
        if (params->store == NULL) {
            /* whole blocks; of the rest, with columns before it that are computed once more */
            int32_t whole = columns - columns % COLUMNS;

            first -= whole == 0 ? COLUMNS - columns : 0;
            columns = whole == 0 ? COLUMNS : whole;
        }
        struct tile tile = {right + first * shape->right.line,
                            params->bias == NULL ? NULL : params->bias + first, columns};

        block.weight_bytes = 4 * (int32_t)(pack(params, &tile, packed) - packed);
        multiply_rows(params, &block, left, columns, output + first * params->column_step, patches);
        first += columns;
    }
}

void ferrule_batch_matmul_block_s8(const struct ferrule_batch_matmul_tile_s8_params *params,
                                   const int8_t *left, const int8_t *right, int8_t *output,
                                   void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
