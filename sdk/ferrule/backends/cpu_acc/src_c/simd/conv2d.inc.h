/* SPDX-License-Identifier: Apache-2.0 */
/* Template, included once per element type: a convolution as products of tiles of neighbouring
 * output pixels and blocks of LANES output channels. Required macros: KERNEL, PARAMS, SOURCE,
 * TARGET (element of the image), WEIGHT, OUTPUT, SUM (type of a vector of sums), WORD_STEP,
 * VECTOR_STEP, SCALE_STEP, LOAD_SUM, LOAD_WORD, LOAD_WEIGHTS, MULTIPLY_ADD, STORE and LAY_OUT. */

/* A group of blocks of channels, and its data. */
struct FERRULE_JOIN(KERNEL, _group) {
    const PARAMS *params;
    const WEIGHT *weights;
    const SCALE *scales;
    const uint8_t *flags; /* one per block */
    OUTPUT *output;       /* at the first pixel and the group's first channel */
    int32_t channels;     /* counted from the group's first channel */
};

/* `pixels` and `blocks` are constants when this is inlined, so that the sums are registers. */
FERRULE_INLINE void FERRULE_JOIN(KERNEL, _tile)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                                const TARGET *image, OUTPUT *output, int32_t pixels,
                                                int32_t blocks)
{
    const PARAMS *params = group->params;
    const WEIGHT *weights = group->weights;
    int32_t column_step = params->column_step;
    SUM sums[TILE_1][4];
    SUM finished[4 * TILE_1];

#pragma GCC unroll 12
    for (int32_t m = 0; m < pixels; ++m) {
#pragma GCC unroll 4
        for (int32_t n = 0; n < blocks; ++n) {
            sums[m][n] = LOAD_SUM(group->scales + n * SCALE_STEP);
        }
    }
    for (int32_t s = 0; s < params->segments; ++s) {
        const TARGET *words = image + params->offsets[s];

        for (int32_t k = 0; k < params->words; ++k) {
            SUM block[4];

#pragma GCC unroll 4
            for (int32_t n = 0; n < blocks; ++n) {
                block[n] = LOAD_WEIGHTS(weights + n * VECTOR_STEP);
            }
#pragma GCC unroll 12
            for (int32_t m = 0; m < pixels; ++m) {
                SUM word = LOAD_WORD(words + m * column_step);

#pragma GCC unroll 4
                for (int32_t n = 0; n < blocks; ++n) {
                    sums[m][n] = MULTIPLY_ADD(sums[m][n], word, block[n]);
                }
            }
            weights += blocks * VECTOR_STEP;
            words += WORD_STEP;
        }
    }
#pragma GCC unroll 4
    for (int32_t n = 0; n < blocks; ++n) {
#pragma GCC unroll 12
        for (int32_t m = 0; m < pixels; ++m) {
            finished[n * pixels + m] = sums[m][n];
        }
    }
    struct column column = {pixels, blocks, params->output_c, group->channels};

    STORE(output, finished, &column, group->scales, group->flags, params);
}

FERRULE_INLINE void FERRULE_JOIN(KERNEL, _tiles)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                                 const TARGET *image, OUTPUT *output,
                                                 int32_t pixels, int32_t blocks)
{
#define FERRULE_TILE(count)                                                                        \
    case count:                                                                                    \
        if (count <= (blocks == 4   ? (int32_t)TILE_4                                              \
                      : blocks == 2 ? (int32_t)TILE_2                                              \
                                    : (int32_t)TILE_1)) {                                          \
            FERRULE_JOIN(KERNEL, _tile)(group, image, output, count, blocks);                      \
        }                                                                                          \
        break;
    switch (pixels) {
        FERRULE_TILE(1)
        FERRULE_TILE(2)
        FERRULE_TILE(3)
        FERRULE_TILE(4)
        FERRULE_TILE(5)
        FERRULE_TILE(6)
        FERRULE_TILE(7)
        FERRULE_TILE(8)
        FERRULE_TILE(9)
        FERRULE_TILE(10)
        FERRULE_TILE(11)
        FERRULE_TILE(12)
    default:
        break;
    }
#undef FERRULE_TILE
}

/* Computes pixels `first` to `end` - 1, row by row, in tiles of about the same size. */
FERRULE_INLINE void FERRULE_JOIN(KERNEL,
                                 _group_pixels)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                                const TARGET *image, int32_t first, int32_t end,
                                                int32_t blocks, int32_t most)
{
    const PARAMS *params = group->params;

    for (int32_t pixel = first; pixel < end;) {
        int32_t row = pixel / params->output_w;
        int32_t column = pixel - row * params->output_w;
        int32_t left = params->output_w - column;
        const TARGET *window = image + row * params->row_step + column * params->column_step;

        left = left < end - pixel ? left : end - pixel;
        for (int32_t tiles = (left + most - 1) / most; tiles > 0; --tiles) {
            int32_t count = (left + tiles - 1) / tiles;

            FERRULE_JOIN(KERNEL, _tiles)(group, window, group->output + pixel * params->output_c,
                                         count, blocks);
            pixel += count;
            left -= count;
            window += count * params->column_step;
        }
    }
}

FERRULE_TARGET static void FERRULE_JOIN(KERNEL,
                                        _by_4)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                               const TARGET *image, int32_t first, int32_t end)
{
    FERRULE_JOIN(KERNEL, _group_pixels)(group, image, first, end, 4, TILE_4);
}

FERRULE_TARGET static void FERRULE_JOIN(KERNEL,
                                        _by_2)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                               const TARGET *image, int32_t first, int32_t end)
{
    FERRULE_JOIN(KERNEL, _group_pixels)(group, image, first, end, 2, TILE_2);
}

FERRULE_TARGET static void FERRULE_JOIN(KERNEL,
                                        _by_1)(const struct FERRULE_JOIN(KERNEL, _group) * group,
                                               const TARGET *image, int32_t first, int32_t end)
{
    FERRULE_JOIN(KERNEL, _group_pixels)(group, image, first, end, 1, TILE_1);
}

#ifdef MULTIPLY_TILES
/* The same in tiles of matrices. */
FERRULE_TILE_TARGET static void
FERRULE_JOIN(KERNEL, _tiled)(const struct FERRULE_JOIN(KERNEL, _group) * group, const TARGET *image,
                             int32_t first, int32_t end, int32_t blocks)
{
    const PARAMS *params = group->params;
    SUM finished[4 * TILE_PIXELS];
    int32_t shaped = 0;

    for (int32_t pixel = first; pixel < end;) {
        int32_t row = pixel / params->output_w;
        int32_t place = pixel - row * params->output_w;
        int32_t left = params->output_w - place;
        const TARGET *window = image + row * params->row_step + place * params->column_step;

        left = left < end - pixel ? left : end - pixel;
        for (int32_t tiles = (left + TILE_PIXELS - 1) / TILE_PIXELS; tiles > 0; --tiles) {
            int32_t count = (left + tiles - 1) / tiles;
            struct column column = {count, blocks, params->output_c, group->channels};

            if (count != shaped) {
                set_tiles(count, params->words % TILE_WORDS);
                shaped = count;
            }
            MULTIPLY_TILES(params, window, group->weights, group->scales, count, blocks, finished);
            STORE(group->output + pixel * params->output_c, finished, &column, group->scales,
                  group->flags, params);
            pixel += count;
            left -= count;
            window += count * params->column_step;
        }
    }
    _tile_release();
}
#endif

FERRULE_TARGET static void FERRULE_JOIN(KERNEL, _pixels)(const PARAMS *params, const TARGET *image,
                                                         OUTPUT *output, int32_t first, int32_t end)
{
    struct FERRULE_JOIN(KERNEL, _group)
        group = {params, params->weights, params->scales, FLAGS(params), output, params->output_c};
    int32_t block_weights = params->segments * params->words * VECTOR_STEP;

    while (group.channels > 0) {
        int32_t blocks = group.channels > 3 * LANES ? 4 : group.channels > LANES ? 2 : 1;

#ifdef MULTIPLY_TILES
        if (params->tiles) {
            FERRULE_JOIN(KERNEL, _tiled)(&group, image, first, end, blocks);
        } else
#endif
            if (blocks == 4) {
            FERRULE_JOIN(KERNEL, _by_4)(&group, image, first, end);
        } else if (blocks == 2) {
            FERRULE_JOIN(KERNEL, _by_2)(&group, image, first, end);
        } else {
            FERRULE_JOIN(KERNEL, _by_1)(&group, image, first, end);
        }
        group.weights += blocks * block_weights;
        group.scales += blocks * SCALE_STEP;
        group.flags += blocks;
        group.output += blocks * LANES;
        group.channels -= blocks * LANES;
    }
}

/* The data that the threads share. */
struct FERRULE_JOIN(KERNEL, _work) {
    const PARAMS *params;
    const TARGET *image;
    OUTPUT *output;
};

static void FERRULE_JOIN(KERNEL, _piece)(void *context, int32_t piece)
{
    const struct FERRULE_JOIN(KERNEL, _work) *work = context;
    const PARAMS *params = work->params;
    int32_t step = params->output_h < params->pieces ? 1 : params->output_w;
    struct ferrule_part part =
        ferrule_part_of(params->output_h * params->output_w / step, piece, params->pieces);

    FERRULE_JOIN(KERNEL, _pixels)(params, work->image, work->output, part.first * step,
                                  part.end * step);
}

void KERNEL(const PARAMS *params, const SOURCE *input, OUTPUT *output, void *scratch,
            struct ferrule_pool *pool)
{
    const struct ferrule_host_image *image = &params->image;
    struct FERRULE_JOIN(KERNEL, _work) work = {params, scratch, output};

    for (int32_t b = 0; b < image->batches; ++b) {
        LAY_OUT(image, input, scratch);
        ferrule_divide(pool, FERRULE_JOIN(KERNEL, _piece), &work, params->pieces);
        input += image->input_h * image->input_w * image->input_c;
        work.output += params->output_h * params->output_w * params->output_c;
    }
}
