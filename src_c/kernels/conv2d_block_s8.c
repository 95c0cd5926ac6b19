/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/conv2d.h"

/* Freestanding compilers call memcpy as a function even for a few bytes. */
#if defined(__GNUC__)
#define COPY_CHANNELS(target, source, number) (void)__builtin_memcpy((target), (source), (number))
#else
#define COPY_CHANNELS(target, source, number) (void)memcpy((target), (source), (number))
#endif

/* Four words at a time; calls of memcpy cost more on the short rows of small images. The target may
 * overlap the source from below. */
static void copy(int8_t *target, const int8_t *source, int32_t bytes)
{
    for (; bytes >= 16; bytes -= 16) {
        FERRULE_COPY_WORD(target, source);
        FERRULE_COPY_WORD(target + 4, source + 4);
        FERRULE_COPY_WORD(target + 8, source + 8);
        FERRULE_COPY_WORD(target + 12, source + 12);
        target += 16;
        source += 16;
    }
    for (; bytes >= 4; bytes -= 4) {
        FERRULE_COPY_WORD(target, source);
        target += 4;
        source += 4;
    }
    for (; bytes > 0; --bytes) {
        *target++ = *source++;
    }
}

void ferrule_conv2d_block_copy(const struct ferrule_conv2d_block_s8_params *params, int8_t *target,
                               const int8_t *source, int32_t count)
{
    copy(target, source, count * params->line_c);
}

/* Four pixels at a time, whose number of channels is known. */
#define COPY_PIXELS(number)                                                                        \
    for (; count >= 4; count -= 4) {                                                               \
        COPY_CHANNELS(target, source, number);                                                     \
        COPY_CHANNELS(target + line_c, source + pixel_c, number);                                  \
        source += 2 * pixel_c;                                                                     \
        target += 2 * line_c;                                                                      \
        COPY_CHANNELS(target, source, number);                                                     \
        COPY_CHANNELS(target + line_c, source + pixel_c, number);                                  \
        source += 2 * pixel_c;                                                                     \
        target += 2 * line_c;                                                                      \
    }

void ferrule_conv2d_block_copy_pixels(const struct ferrule_conv2d_block_s8_params *params,
                                      int8_t *target, const int8_t *source, int32_t count)
{
    const int32_t channels = params->window.input_c;
    const int32_t pixel_c = params->view.pixel_c;
    const int32_t line_c = params->line_c;

    if (channels == 4) {
        COPY_PIXELS(4)
    } else if (channels == 3) {
        COPY_PIXELS(3)
    } else if (channels == 2) {
        COPY_PIXELS(2)
    } else if (channels == 1) {
        COPY_PIXELS(1)
    }
    for (; count > 0; --count) {
        copy(target, source, channels);
        target += line_c;
        source += pixel_c;
    }
}

/* The pixels of a row that is outside the image. */
static void fill_pixels(const struct ferrule_conv2d_block_s8_params *params, int8_t *target)
{
    const int32_t channels = params->window.input_c;

    if (params->line_c == channels) {
        (void)memset(target, params->input_zero_point, (size_t)(params->line_w * channels));
        return;
    }
    for (int32_t count = params->line_w; count > 0; --count) {
        for (int32_t c = 0; c < channels; ++c) {
            target[c] = (int8_t)params->input_zero_point;
        }
        target += params->line_c;
    }
}

/* Copy the rows under one row of window positions, from row `first` of the window on; only their
 * padding is there. */
static void fill_lines(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int8_t *lines, int32_t first)
{
    const struct ferrule_window *window = &params->window;
    int32_t skipped = window->pad_left < 0 ? -window->pad_left : 0; /* columns of the image */
    int32_t left = window->pad_left < 0 ? 0 : window->pad_left;
    int32_t room = params->line_w - left;
    int32_t pixels = window->input_w - skipped;
    int32_t count = pixels < room ? pixels : room;

    lines += first * params->line_bytes;
    for (int32_t i = first; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h) {
            fill_pixels(params, lines);
        } else {
            int32_t pixel = row * window->input_w + skipped;

            params->copy(params, lines + left * params->line_c,
                         image + pixel * params->view.pixel_c, count);
        }
        lines += params->line_bytes;
    }
}

/* Keep the rows that the next row of window positions has, too; return their number. */
static int32_t keep_lines(const struct ferrule_conv2d_block_s8_params *params, int8_t *lines)
{
    const struct ferrule_window *window = &params->window;
    int32_t kept = window->kernel_h - window->stride_h;

    /* not of lines that have the pixels of all rows side by side */
    if (window->dilation_h != 1 || kept <= 0 || params->view.groups != 1 ||
        params->line_bytes < params->line_w * params->line_c) {
        return 0;
    }
    copy(lines, lines + window->stride_h * params->line_bytes, kept * params->line_bytes);
    return kept;
}

/* Widen the window of a single pixel in the lines, in the order of ferrule_block_gather. */
static void gather_one_line(const struct ferrule_block_rows *rows, const int8_t *source,
                            uint32_t *target)
{
    const int8_t *row = source;

    for (int32_t i = 0; i < rows->count; ++i) {
        ferrule_widen(row, rows->words, target, 4);
        target += 4 * rows->words;
        row += 4 * rows->words + rows->step_bytes;
    }
    row = source + 4 * rows->words;
    int16_t *at = (int16_t *)target;
    for (int32_t i = 0; i < rows->count; ++i) {
        for (int32_t k = 0; k < rows->rest; ++k) {
            at[0] = row[k];
            at += (i * rows->rest + k) % 2 == 0 ? 1 : 3;
        }
        row += 4 * rows->words + rows->step_bytes;
    }
}

/* Neighbouring pixels from `output` on, whose windows begin at the source. */
static struct ferrule_block_pixels pixels_of(const struct ferrule_conv2d_row *row, int8_t *output,
                                             const int8_t *source, int32_t pairs)
{
    const struct ferrule_conv2d_block_s8_params *params = row->params;
    const struct ferrule_block_rows *rows = &params->rows;
    int32_t pixel_c = params->line_w != 0 ? params->line_c : params->view.pixel_c;
    struct ferrule_block_pixels pixels = {
        .first = output,
        .second = output + params->view.column,
        .source = source,
        .step_bytes = params->window.stride_w * pixel_c,
        .pairs = pairs,
        .rows = rows->count != 1 || rows->rest != 0 ? rows : NULL,
    };

    return pixels;
}

/* Compute the pixel that waits and another one, or the same if there is no other one. */
static void store_waiting(struct ferrule_conv2d_row *row, int8_t *second)
{
    struct ferrule_block_pixels pixels = {.first = row->waiting, .second = second, .pairs = 1};

    row->block.store(&row->block, &pixels, row->patches);
    row->waiting = NULL;
}

void ferrule_conv2d_block_lines(struct ferrule_conv2d_row *row)
{
    const struct ferrule_conv2d_block_s8_params *params = row->params;
    const struct ferrule_window *window = &params->window;
    int8_t *lines = (int8_t *)(row->patches + 4 * row->block.words);
    const int8_t *line = lines;
    int32_t y = row->index * window->stride_h - window->pad_top;
    int32_t left = window->output_w;
    int8_t *output = row->output;

    fill_lines(params, row->image, y, lines, row->index > 0 ? keep_lines(params, lines) : 0);
    if (row->waiting != NULL) {
        gather_one_line(&params->rows, line, row->patches + 1);
        store_waiting(row, output);
        output += params->view.column;
        line += window->stride_w * params->line_c;
        left -= 1;
    }
    if (left > 1) {
        struct ferrule_block_pixels pixels = pixels_of(row, output, line, left / 2);

        row->block.store(&row->block, &pixels, row->patches);
        output += 2 * pixels.pairs * params->view.column;
        line += 2 * pixels.pairs * pixels.step_bytes;
    }
    if (left % 2 != 0) {
        gather_one_line(&params->rows, line, row->patches);
        row->waiting = output;
    }
}

static uint32_t *fill_words(uint32_t *target, int32_t words, uint32_t value)
{
    for (int32_t i = 0; i < words; ++i) {
        target[0] = value;
        target[2] = value;
        target += 4;
    }
    return target;
}

/* Widen the window of a single pixel in the image. */
static void gather_one(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int32_t x, uint32_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t words = window->input_c / 4;
    int32_t pixel_c = params->view.pixel_c;
    uint32_t outside = ferrule_pair(params->input_zero_point, params->input_zero_point);
    struct ferrule_taps inside =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h || inside.first == inside.end) {
            target = fill_words(target, window->kernel_w * words, outside);
            continue;
        }
        target = fill_words(target, inside.first * words, outside);
        int32_t column = x + inside.first * window->dilation_w;
        const int8_t *source = image + (row * window->input_w + column) * pixel_c;
        if (window->dilation_w == 1 && pixel_c == window->input_c) {
            int32_t count = (inside.end - inside.first) * words;
            ferrule_widen(source, count, target, 4);
            target += 4 * count;
        } else {
            for (int32_t j = inside.first; j < inside.end; ++j) {
                ferrule_widen(source, words, target, 4);
                source += window->dilation_w * pixel_c;
                target += 4 * words;
            }
        }
        target = fill_words(target, (window->kernel_w - inside.end) * words, outside);
    }
}

/* Widen the windows of two pixels in the image that lie inside horizontally. */
static void gather_two(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int32_t x, uint32_t *target)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_block_rows rows = params->rows;
    int32_t pixel_c = params->view.pixel_c;
    int32_t row_words = window->kernel_w * (window->input_c / 4);
    uint32_t outside = ferrule_pair(params->input_zero_point, params->input_zero_point);
    struct ferrule_taps inside =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    int32_t above = inside.first * row_words;
    int32_t count = inside.end - inside.first;
    int32_t below = (window->kernel_h - inside.end) * row_words;

    (void)fill_words(target + 1, above, outside);
    target = fill_words(target, above, outside);
    if (count > 0) {
        int32_t row = y + inside.first * window->dilation_h;

        if (rows.lines > 1) {
            rows.lines = count;
        } else if (window->kernel_h > 1) {
            rows.count = count;
        }
        rows.gather(&rows, image + (row * window->input_w + x) * pixel_c,
                    window->stride_w * pixel_c, target);
        target += 4 * count * row_words;
    }
    (void)fill_words(target + 1, below, outside);
    (void)fill_words(target, below, outside);
}

void ferrule_conv2d_block_image(struct ferrule_conv2d_row *row)
{
    const struct ferrule_conv2d_block_s8_params *params = row->params;
    const struct ferrule_window *window = &params->window;
    const int32_t pixel_c = params->view.pixel_c;
    int32_t y = row->index * window->stride_h - window->pad_top;
    int32_t x = -window->pad_left;
    /* Up to this column, two windows lie inside horizontally. */
    int32_t reach = (window->kernel_w - 1) * window->dilation_w + 1 + window->stride_w;
    int32_t most_x = window->input_w - reach;
    bool has_rows = y >= 0 && y + (window->kernel_h - 1) * window->dilation_h < window->input_h;
    int8_t *output = row->output;
    int32_t left = window->output_w;

    while (left > 0) {
        int32_t done = 1;

        if (row->waiting != NULL) {
            gather_one(params, row->image, y, x, row->patches + 1);
            store_waiting(row, output);
        } else if (left > 1 && x >= 0 && x <= most_x) {
            struct ferrule_block_pixels pixels = pixels_of(row, output, NULL, 1);

            if (has_rows) {
                int32_t inside = (most_x - x) / window->stride_w + 2;

                pixels.source = row->image + (y * window->input_w + x) * pixel_c;
                pixels.pairs = (inside < left ? inside : left) / 2;
            } else {
                gather_two(params, row->image, y, x, row->patches);
            }
            row->block.store(&row->block, &pixels, row->patches);
            done = 2 * pixels.pairs;
        } else {
            gather_one(params, row->image, y, x, row->patches);
            row->waiting = output;
        }
        output += done * params->view.column;
        x += done * window->stride_w;
        left -= done;
    }
}

static void convolve(const struct ferrule_conv2d_block_s8_params *params, const int8_t *input,
                     int8_t *output, uint32_t *patches)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_view *view = &params->view;
    struct ferrule_conv2d_row row = {.params = params, .block = params->block, .patches = patches};

    /* The weights of the elements past the last product are zero, and the second pixel of the last
     * pair may not exist; what is read of both must be defined. */
    (void)memset(patches, 0, (size_t)(16 * row.block.words));
    if (params->line_w != 0) {
        (void)memset(patches + 4 * row.block.words, params->input_zero_point,
                     (size_t)(window->kernel_h * params->line_w * window->input_c + 4));
    }
    for (int32_t b = 0; b < window->batches; ++b) {
        for (row.index = 0; row.index < window->output_h; ++row.index) {
            bool last = b + 1 == window->batches && row.index + 1 == window->output_h;

            row.block.weights = params->block.weights;
            row.image = input;
            row.output = output + row.index * view->row;
            for (int32_t g = 0; g < view->groups; ++g) {
                params->convolve(&row);
                if (row.waiting != NULL && (view->groups > 1 || last)) {
                    store_waiting(&row, row.waiting);
                }
                row.image += window->input_c;
                row.output += view->group_output;
                row.block.weights += row.block.weight_bytes / 4;
            }
        }
        input += window->input_h * window->input_w * view->pixel_c;
        output += view->image;
    }
}

void ferrule_conv2d_block_s8(const struct ferrule_conv2d_block_s8_params *params,
                             const int8_t *input, int8_t *output, void *scratch)
{
    bool more = true;

    for (; more; ++params) {
        convolve(params, input + params->first_c, output + params->view.first, scratch);
        more = params->view.more != 0;
    }
}
