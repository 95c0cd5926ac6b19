/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "ferrule/kernels/batch_matmul.h"
#include "ferrule/kernels/float_pixels.h"

enum { ELEMENT = (int32_t)sizeof(float), FOUR = 4 };

/* Pack four columns from `first` on; those that are missing have zeros. */
static void pack_four(const struct ferrule_batch_matmul_tile_f32_params *params, const float *right,
                      int32_t first, int32_t columns, float *target)
{
    static const float zero = 0.0f;
    const struct ferrule_batch_matmul_strides *strides = &params->shape.right;
    const int32_t step = strides->depth;
    const int32_t block = params->block;
    const float *from[FOUR];
    int32_t steps[FOUR];

    for (int32_t c = 0; c < FOUR; ++c) {
        from[c] = first + c < columns ? right + (first + c) * strides->line : &zero;
        steps[c] = first + c < columns ? step : 0;
    }
    if (first + FOUR <= columns) {
        const float *a = from[0];
        const float *b = from[1];
        const float *c = from[2];
        const float *d = from[3];

        for (int32_t k = params->shape.depth; k > 0; --k) {
            target[0] = *a;
            target[1] = *b;
            target[2] = *c;
            target[3] = *d;
            a += step;
            b += step;
            c += step;
            d += step;
            target += block;
        }
    } else {
        for (int32_t k = 0; k < params->shape.depth; ++k) {
            for (int32_t c = 0; c < FOUR; ++c) {
                target[c] = from[c][k * steps[c]];
            }
            target += block;
        }
    }
    for (int32_t c = 0; c < FOUR; ++c) {
        target[c] = 0.0f; /* the biases: no sum is -0, so that they change none */
    }
}

static void pack(const struct ferrule_batch_matmul_tile_f32_params *params, const float *right,
                 int32_t columns, float *packed)
{
    const int32_t block = params->block;

    for (int32_t first = 0; first < columns; first += block) {
        for (int32_t c = first; c < first + block; c += FOUR) {
            pack_four(params, right, c, columns, packed + (c - first));
        }
        packed += (params->shape.depth + 1) * block;
    }
}

static void multiply(const struct ferrule_batch_matmul_tile_f32_params *params, const float *left,
                     const float *right, float *output, float *packed)
{
    const struct ferrule_batch_matmul_shape *shape = &params->shape;
    const bool is_adjacent = shape->left.depth == 1;

    for (int32_t first = 0; first < shape->columns; first += params->tile_columns) {
        const int32_t rest = shape->columns - first;
        const int32_t columns = rest < params->tile_columns ? rest : params->tile_columns;
        const int32_t blocks = (columns + params->block - 1) / params->block;
        struct ferrule_float_pixels pixels = {
            .image = left,
            .image_step = shape->left.line * ELEMENT,
            .output = output + first,
            .output_step = shape->columns * ELEMENT,
            .pixels = shape->rows,
            .stream = packed,
            .blocks = blocks,
            .last = columns - (blocks - 1) * params->block,
            .rows = 1,
            .runs = is_adjacent ? 1 : shape->depth,
            .count = is_adjacent ? shape->depth : 1,
            .run_step = (shape->left.depth - 1) * ELEMENT,
        };

        ferrule_float_unlimited(&pixels);
        pack(params, right + first * shape->right.line, columns, packed);
        if (params->block == FOUR) {
            ferrule_float_blocks_4(&pixels);
        } else {
            ferrule_float_blocks_8(&pixels);
        }
    }
}

void ferrule_batch_matmul_block_f32(const struct ferrule_batch_matmul_tile_f32_params *params,
                                    const float *left, const float *right, float *output,
                                    void *scratch)
{
    FERRULE_BATCH_MATMUL_EACH(params, left, right, output, scratch, multiply);
}
