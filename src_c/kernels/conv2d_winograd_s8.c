/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/winograd_tiles.h"

/* Transform the pixels of two tiles that are partly outside the image. */
static void transform_at_border(const struct ferrule_conv2d_winograd_s8_params *params,
                                const int8_t *image, int32_t y, int32_t x, uint32_t *v)
{
    const struct ferrule_window *window = &params->window;
    uint32_t patch[FERRULE_WINOGRAD_ROWS * FERRULE_WINOGRAD_COLUMNS];
    int32_t pixel_bytes = window->input_c;
    struct ferrule_taps rows = ferrule_taps_inside(y, FERRULE_WINOGRAD_ROWS, 1, window->input_h);
    struct ferrule_taps columns =
        ferrule_taps_inside(x, FERRULE_WINOGRAD_COLUMNS, 1, window->input_w);
    const int8_t *source =
        image + ((y + rows.first) * window->input_w + x + columns.first) * pixel_bytes;

    (void)memset(patch, params->input_zero_point, sizeof patch);
    for (int32_t left = window->input_c / 4; left > 0; --left) {
        const int8_t *line = source;

        for (int32_t i = rows.first; i < rows.end; ++i) {
            const int8_t *pixel = line;

            for (int32_t j = columns.first; j < columns.end; ++j) {
                patch[i * FERRULE_WINOGRAD_COLUMNS + j] = ferrule_load_word(pixel);
                pixel += pixel_bytes;
            }
            line += window->input_w * pixel_bytes;
        }
        ferrule_winograd_input((const int8_t *)patch, 4 * FERRULE_WINOGRAD_COLUMNS, 4, v, 1);
        source += 4;
        v += FERRULE_WINOGRAD_V_WORDS;
    }
}

static void transform_pixels(const struct ferrule_conv2d_winograd_s8_params *params,
                             const int8_t *image, int32_t y, int32_t x, uint32_t *v)
{
    const struct ferrule_window *window = &params->window;

    if (y < 0 || x < 0 || y + FERRULE_WINOGRAD_ROWS > window->input_h ||
        x + FERRULE_WINOGRAD_COLUMNS > window->input_w) {
        transform_at_border(params, image, y, x, v);
    } else {
        ferrule_winograd_input(image + (y * window->input_w + x) * window->input_c,
                               window->input_w * window->input_c, window->input_c, v,
                               window->input_c / 4);
    }
}

static void clamp_bytes(int8_t *bytes, int32_t count, const struct ferrule_output_s8 *output)
{
    for (int32_t i = 0; i < count; ++i) {
        bytes[i] = (int8_t)ferrule_clamp(bytes[i], output->low, output->high);
    }
}

/* The place of two tiles in an image's output. */
struct place {
    int32_t row;
    int32_t column;
};

static void next_place(struct place *place, const struct ferrule_window *window)
{
    place->column += 2 * FERRULE_WINOGRAD_TILE;
    if (place->column >= window->output_w) {
        place->column = 0;
        place->row += FERRULE_WINOGRAD_TILE;
    }
}

static void compute_tiles(const struct ferrule_conv2d_winograd_s8_params *params, int8_t *output,
                          const struct place *place, struct ferrule_winograd_tiles *tiles)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = params->output_c;
    int32_t columns = window->output_w - place->column;

    tiles->row_step = window->output_h - place->row > 1 ? window->output_w * channels : 0;
    tiles->first = output + (place->row * window->output_w + place->column) * channels;
    tiles->first_step = columns > 1 ? channels : 0;
    tiles->second = columns > 2 ? tiles->first + 2 * channels : tiles->first;
    tiles->second_step = columns > 3 ? channels : 0;
    ferrule_winograd_tiles(tiles);
}

/* Scratch: sums, V and U. */
struct workspace {
    int32_t *sums;
    int32_t sums_step; /* words from one pair of tiles to the next; 0 if they are not kept */
    uint32_t *v;
    int32_t v_step;
    int32_t *u;
};

/* Compute all channels of some pairs of tiles whose V is in scratch. U is computed for one block
 * and 16 input channels at a time. */
static void compute_chunk(const struct ferrule_conv2d_winograd_s8_params *params, int8_t *output,
                          const struct place *start, const struct place *end,
                          const struct workspace *workspace, struct ferrule_winograd_tiles *tiles)
{
    const int32_t *weights = params->weights;

    tiles->channels = params->channels;
    for (int32_t c = 0; c < params->output_c; c += FERRULE_WINOGRAD_BLOCK) {
        for (int32_t part = 0; part < workspace->v_step; part += FERRULE_WINOGRAD_CHUNK_V_WORDS) {
            struct place place = *start;

            ferrule_winograd_weights(weights, workspace->u,
                                     weights + FERRULE_WINOGRAD_CHUNK_WEIGHTS);
            weights += FERRULE_WINOGRAD_CHUNK_WEIGHTS;
            tiles->v = workspace->v + part;
            tiles->sums = workspace->sums;
            tiles->finish = part + FERRULE_WINOGRAD_CHUNK_V_WORDS == workspace->v_step ? 1 : 0;
            do {
                int32_t *sums_end = tiles->sums + FERRULE_WINOGRAD_SUM_WORDS;

                tiles->sums_end = part == 0 ? sums_end : NULL;
                tiles->added_end = part == 0 ? NULL : sums_end;
                compute_tiles(params, output + c, &place, tiles);
                tiles->v += workspace->v_step;
                tiles->sums += workspace->sums_step;
                next_place(&place, &params->window);
            } while (place.row != end->row || place.column != end->column);
        }
        tiles->channels += tiles->block_channel_words;
    }
}

static void convolve(const struct ferrule_conv2d_winograd_s8_params *params, const int8_t *image,
                     int8_t *output, const struct workspace *workspace,
                     struct ferrule_winograd_tiles *tiles)
{
    const struct ferrule_window *window = &params->window;
    struct place place = {0, 0};

    while (place.row < window->output_h) {
        struct place start = place;
        uint32_t *v = workspace->v;

        for (int32_t k = 0; k < params->pairs_at_once && place.row < window->output_h; ++k) {
            transform_pixels(params, image, place.row - window->pad_top,
                             place.column - window->pad_left, v);
            v += workspace->v_step;
            next_place(&place, window);
        }
        if (params->transformed != NULL) {
            compute_tiles(params, output, &start, tiles);
        } else {
            compute_chunk(params, output, &start, &place, workspace, tiles);
        }
    }
}

void ferrule_conv2d_winograd_s8(const struct ferrule_conv2d_winograd_s8_params *params,
                                const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    int32_t parts = (window->input_c + FERRULE_WINOGRAD_CHUNK - 1) / FERRULE_WINOGRAD_CHUNK;
    int32_t image_bytes = window->output_h * window->output_w * params->output_c;
    int32_t *sums = scratch;
    int32_t kept = params->transformed == NULL && parts > 1 ? params->pairs_at_once : 1;
    uint32_t *v = (uint32_t *)(sums + kept * FERRULE_WINOGRAD_SUM_WORDS);
    struct workspace workspace = {
        .sums = sums,
        .sums_step = kept > 1 ? FERRULE_WINOGRAD_SUM_WORDS : 0,
        .v = v,
        .v_step = parts * FERRULE_WINOGRAD_CHUNK_V_WORDS,
        .u = (int32_t *)(v + params->pairs_at_once * parts * FERRULE_WINOGRAD_CHUNK_V_WORDS)};
    struct ferrule_winograd_tiles tiles = {
        .v_bytes = FERRULE_WINOGRAD_CHUNK_V_WORDS * 4,
        .sums = sums,
        .v = v,
        .blocks = 1,
        .block_channel_words =
            FERRULE_WINOGRAD_BLOCK *
            (params->proved ? FERRULE_WINOGRAD_PROVED_WORDS : FERRULE_EXACT_WORDS)};

    if (params->transformed != NULL) {
        tiles.v_bytes = workspace.v_step * 4;
        tiles.sums_end = sums + FERRULE_WINOGRAD_SUM_WORDS;
        tiles.u = params->transformed;
        tiles.channels = params->channels;
        tiles.blocks = params->output_c / FERRULE_WINOGRAD_BLOCK;
        tiles.finish = 1;
    } else {
        tiles.u = workspace.u;
    }
    for (int32_t b = 0; b < window->batches; ++b) {
        convolve(params, input, output, &workspace, &tiles);
        if (params->output.low != INT8_MIN || params->output.high != INT8_MAX) {
            clamp_bytes(output, image_bytes, &params->output);
        }
        input += window->input_h * window->input_w * window->input_c;
        output += image_bytes;
    }
}
