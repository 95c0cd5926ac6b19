/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "ferrule/kernels/conv2d.h"

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

/* Copy the channels of a group from neighbouring pixels. */
static void copy_group(int8_t *target, const int8_t *source, int32_t bytes, int32_t channels,
                       int32_t pixel_c)
{
    if (channels == 4) {
        for (; bytes >= 16; bytes -= 16) {
            FERRULE_COPY_WORD(target, source);
            FERRULE_COPY_WORD(target + 4, source + pixel_c);
            source += 2 * pixel_c;
            FERRULE_COPY_WORD(target + 8, source);
            FERRULE_COPY_WORD(target + 12, source + pixel_c);
            source += 2 * pixel_c;
            target += 16;
        }
        for (; bytes > 0; bytes -= 4) {
            FERRULE_COPY_WORD(target, source);
            target += 4;
            source += pixel_c;
        }
        return;
    }
    for (; bytes > 0; bytes -= channels) {
        copy(target, source, channels);
        target += channels;
        source += pixel_c;
    }
}

/* Copy the rows under one row of window positions, from row `first` of the window on; only their
 * padding is there. */
static void fill_lines(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int8_t *lines, int32_t first)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;
    int32_t pixel_c = params->view.pixel_c;
    int32_t skipped = window->pad_left < 0 ? -window->pad_left : 0; /* columns of the image */
    int32_t left_bytes = window->pad_left < 0 ? 0 : window->pad_left * channels;
    int32_t row_bytes = (window->input_w - skipped) * channels;
    int32_t room = params->line_bytes - left_bytes;
    int32_t bytes = row_bytes < room ? row_bytes : room;

    lines += first * params->line_bytes;
    for (int32_t i = first; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h) {
            (void)memset(lines, params->input_zero_point, (size_t)params->line_bytes);
        } else {
            const int8_t *source = image + (row * window->input_w + skipped) * pixel_c;

            if (pixel_c == channels) {
                copy(lines + left_bytes, source, bytes);
            } else {
                copy_group(lines + left_bytes, source, bytes, channels, pixel_c);
            }
        }
        lines += params->line_bytes;
    }
}

/* Keep the rows that the next row of window positions has, too; return their number. */
static int32_t keep_lines(const struct ferrule_conv2d_block_s8_params *params, int8_t *lines)
{
    const struct ferrule_window *window = &params->window;
    int32_t kept = window->kernel_h - window->stride_h;

    if (window->dilation_h != 1 || kept <= 0 || params->view.groups != 1) {
        return 0;
    }
    copy(lines, lines + window->stride_h * params->line_bytes, kept * params->line_bytes);
    return kept;
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

/* Widen the windows of two pixels in the image that lie inside horizontally. */
static void gather_two(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int32_t x, uint32_t *target)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_block_rows rows = params->rows;
    int32_t pixel_c = params->view.pixel_c;
    int32_t offset = window->stride_w * pixel_c;
    uint32_t outside = ferrule_pair(params->input_zero_point, params->input_zero_point);
    struct ferrule_taps inside =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    int32_t above = inside.first * rows.words;
    int32_t below = (window->kernel_h - inside.end) * rows.words;
    int32_t row = y + inside.first * window->dilation_h;
    const int8_t *source = image + (row * window->input_w + x) * pixel_c;

    (void)fill_words(target + 1, above, outside);
    target = fill_words(target, above, outside);
    rows.count = inside.end - inside.first;
    if (window->dilation_w != 1 || pixel_c != window->input_c) { /* each tap is a row */
        int32_t row_bytes = 4 * rows.words + rows.step_bytes;
        int32_t left = rows.count;

        rows.count = window->kernel_w;
        rows.words = window->input_c / 4;
        rows.step_bytes = window->dilation_w * pixel_c - window->input_c;
        for (; left > 0; --left) {
            ferrule_block_gather(&rows, source, offset, target);
            source += row_bytes;
            target += 4 * rows.count * rows.words;
        }
    } else if (rows.count > 0) {
        ferrule_block_gather(&rows, source, offset, target);
        target += 4 * rows.count * rows.words;
    }
    (void)fill_words(target + 1, below, outside);
    (void)fill_words(target, below, outside);
}

/* Compute a row of output pixels, for one group of channels. `waiting` is a pixel that is gathered
 * but not computed, or null; so is what is returned. */
static int8_t *convolve_row(const struct ferrule_conv2d_block_s8_params *params,
                            const struct ferrule_block *block, const int8_t *image, int32_t y,
                            int8_t *output, int8_t *waiting, uint32_t *patches)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_block_rows *rows = &params->rows;
    int8_t *lines = (int8_t *)(patches + 4 * block->words);
    bool has_lines = params->line_bytes != 0;
    int32_t step = window->stride_w * (has_lines ? window->input_c : params->view.pixel_c);
    int32_t column = params->view.column;
    /* Between these columns, two windows lie inside or in the lines. */
    int32_t least_x = has_lines ? -window->pad_left : 0;
    int32_t reach = (window->kernel_w - 1) * window->dilation_w + 1 + window->stride_w;
    int32_t most_x = has_lines ? INT32_MAX : window->input_w - reach;
    int32_t x = -window->pad_left;
    int32_t left = window->output_w;
    /* Whether the function that stores pixels finds their windows as such rows. */
    bool has_rows = has_lines ||
                    (y >= 0 && window->dilation_w == 1 && params->view.pixel_c == window->input_c &&
                     y + (window->kernel_h - 1) * window->dilation_h < window->input_h);
    const int8_t *line =
        has_lines ? lines : image + (y * window->input_w + x) * params->view.pixel_c;
    struct ferrule_block_pixels pixels = {.first = waiting, .step_bytes = step, .pairs = 1};

    if (rows->count != 1 || rows->rest != 0) {
        pixels.rows = rows;
    }
    while (left > 0) {
        if (pixels.first == NULL && left > 1 && x >= least_x && x <= most_x) {
            int32_t pairs = 1;

            pixels.first = output;
            pixels.second = output + column;
            pixels.source = NULL;
            if (!has_rows) {
                gather_two(params, image, y, x, patches);
            } else {
                pixels.source = line;
                pairs = has_lines ? left : (most_x - x) / window->stride_w + 2;
                pairs = (pairs < left ? pairs : left) / 2;
            }
            pixels.pairs = pairs;
            block->store(block, &pixels, patches);
            pixels.first = NULL;
            output += 2 * pairs * column;
            x += 2 * pairs * window->stride_w;
            line += 2 * pairs * step;
            left -= 2 * pairs;
            continue;
        }
        if (has_lines) {
            gather_one_line(rows, line, patches + (pixels.first != NULL));
        } else {
            gather_one(params, image, y, x, patches + (pixels.first != NULL));
        }
        if (pixels.first == NULL) {
            pixels.first = output;
        } else {
            pixels.second = output;
            pixels.source = NULL;
            pixels.pairs = 1;
            block->store(block, &pixels, patches);
            pixels.first = NULL;
        }
        output += column;
        x += window->stride_w;
        line += step;
        --left;
    }
    return pixels.first;
}

static void convolve(const struct ferrule_conv2d_block_s8_params *params, const int8_t *input,
                     int8_t *output, uint32_t *patches)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_view *view = &params->view;
    int8_t *lines = (int8_t *)(patches + 4 * params->block.words);
    struct ferrule_block block = params->block;
    int8_t *waiting = NULL;

    /* The weights of the elements past the last product are zero, and the second pixel of the last
     * pair may not exist; what is read of both must be defined. */
    (void)memset(patches, 0, (size_t)(16 * block.words));
    if (params->line_bytes != 0) {
        (void)memset(lines, params->input_zero_point,
                     (size_t)(window->kernel_h * params->line_bytes + 4));
    }
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int32_t y = i * window->stride_h - window->pad_top;
            bool last = b + 1 == window->batches && i + 1 == window->output_h;

            block.weights = params->block.weights;
            for (int32_t g = 0; g < view->groups; ++g) {
                const int8_t *image = input + g * window->input_c;
                int8_t *row = output + i * view->row + g * view->group_output;

                if (params->line_bytes != 0) {
                    fill_lines(params, image, y, lines, i > 0 ? keep_lines(params, lines) : 0);
                }
                waiting = convolve_row(params, &block, image, y, row, waiting, patches);
                if (waiting != NULL && (view->groups > 1 || last)) {
                    struct ferrule_block_pixels pixels = {
                        .first = waiting,
                        .second = waiting,
                        .pairs = 1,
                    };

                    block.store(&block, &pixels, patches);
                    waiting = NULL;
                }
                block.weights += block.weight_bytes / 4;
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
        convolve(params, input, output + params->view.first, scratch);
        more = params->view.more != 0;
    }
}
