/* SPDX-License-Identifier: Apache-2.0 */
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

/* Copy the rows under one row of window positions, from row `first` of the window on; only their
 * padding is there. */
static void fill_lines(const struct ferrule_conv2d_block_s8_params *params, const int8_t *image,
                       int32_t y, int8_t *lines, int32_t first)
{
    const struct ferrule_window *window = &params->window;
    int32_t row_bytes = window->input_w * window->input_c;
    int32_t left_bytes = window->pad_left * window->input_c;
    int32_t room = params->line_bytes - left_bytes;

    lines += first * params->line_bytes;
    for (int32_t i = first; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h) {
            (void)memset(lines, params->input_zero_point, (size_t)params->line_bytes);
        } else {
            copy(lines + left_bytes, image + row * row_bytes, row_bytes < room ? row_bytes : room);
        }
        lines += params->line_bytes;
    }
}

/* Keep the rows that the next row of window positions has, too; return their number. */
static int32_t keep_lines(const struct ferrule_conv2d_block_s8_params *params, int8_t *lines)
{
    const struct ferrule_window *window = &params->window;
    int32_t kept = window->kernel_h - window->stride_h;

    if (window->dilation_h != 1 || kept <= 0) {
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
        const int8_t *source = image + (row * window->input_w + column) * window->input_c;
        if (window->dilation_w == 1) {
            int32_t count = (inside.end - inside.first) * words;
            ferrule_widen(source, count, target, 4);
            target += 4 * count;
        } else {
            for (int32_t j = inside.first; j < inside.end; ++j) {
                ferrule_widen(source, words, target, 4);
                source += window->dilation_w * window->input_c;
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
    uint32_t outside = ferrule_pair(params->input_zero_point, params->input_zero_point);
    struct ferrule_taps inside =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    int32_t above = inside.first * rows.words;
    int32_t below = (window->kernel_h - inside.end) * rows.words;
    int32_t row = y + inside.first * window->dilation_h;

    (void)fill_words(target + 1, above, outside);
    target = fill_words(target, above, outside);
    rows.count = inside.end - inside.first;
    if (rows.count > 0) {
        ferrule_block_gather(&rows, image + (row * window->input_w + x) * window->input_c,
                             window->stride_w * window->input_c, target);
        target += 4 * rows.count * rows.words;
    }
    (void)fill_words(target + 1, below, outside);
    (void)fill_words(target, below, outside);
}

void ferrule_conv2d_block_s8(const struct ferrule_conv2d_block_s8_params *params,
                             const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_block *block = &params->block;
    uint32_t *patches = scratch;
    int8_t *lines = (int8_t *)(patches + 4 * block->words);
    bool has_lines = params->line_bytes != 0;
    int32_t step = window->stride_w * window->input_c;
    /* Between these columns, two windows lie inside or in the lines. */
    int32_t least_x = has_lines ? -window->pad_left : 0;
    int32_t most_x = has_lines ? INT32_MAX : window->input_w - window->kernel_w - window->stride_w;
    struct ferrule_block_pixels pixels = {output, output, NULL, 0, 1};
    int32_t waiting = 0; /* pixels gathered but not computed: 0 or 1 */

    if (window->dilation_w != 1) {
        most_x = INT32_MIN;
    }
    /* The weights of the elements past the last product are zero, and the second pixel of the last
     * pair may not exist; what is read of both must be defined. */
    (void)memset(patches, 0, (size_t)(16 * block->words));
    (void)memset(lines, params->input_zero_point, (size_t)(window->kernel_h * params->line_bytes));
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int32_t y = i * window->stride_h - window->pad_top;

            if (has_lines) {
                fill_lines(params, input, y, lines, i > 0 ? keep_lines(params, lines) : 0);
            }
            for (int32_t j = 0; j < window->output_w; ++j) {
                int32_t x = j * window->stride_w - window->pad_left;
                const int8_t *line = lines + j * step;

                if (waiting == 0 && j + 1 < window->output_w && x >= least_x && x <= most_x) {
                    if (has_lines) {
                        params->gather(&params->rows, line, step, patches);
                    } else {
                        gather_two(params, input, y, x, patches);
                    }
                    pixels.second = output + block->output_c;
                    block->store(block, &pixels, patches);
                    output += 2 * block->output_c;
                    pixels.first = output;
                    ++j;
                    continue;
                }
                if (has_lines) {
                    gather_one_line(&params->rows, line, patches + waiting);
                } else {
                    gather_one(params, input, y, x, patches + waiting);
                }
                if (waiting != 0) {
                    pixels.second = output;
                    block->store(block, &pixels, patches);
                    pixels.first = output + block->output_c;
                }
                waiting ^= 1;
                output += block->output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
    if (waiting != 0) {
        pixels.second = pixels.first;
        block->store(block, &pixels, patches);
    }
}
