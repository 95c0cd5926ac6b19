/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual_s16.h"

/* Set the taps of a pixel that are inside the image; `line` is the row under the first one. */
static void set_taps(const struct ferrule_window *window, const int16_t *line, int32_t x,
                     struct ferrule_taps rows, struct ferrule_dual_depthwise *run)
{
    struct ferrule_taps columns =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t count = columns.end - columns.first;
    int32_t row_words = (window->kernel_w + 1) / 2;

    run->data = line + (x + columns.first * window->dilation_w) * window->input_c;
    run->rows = count > 0 ? rows.end - rows.first : 0;
    run->lead = count > 0 ? columns.first % 2 : 0;
    run->pairs = (count - run->lead) / 2;
    run->tail = (count - run->lead) % 2;
    run->first_weight = 4 * (2 + rows.first * row_words + columns.first / 2);
    run->skipped = 4 * (row_words - run->lead - run->pairs - run->tail);
}

static void store_row(const struct ferrule_depthwise_conv2d_dual_s16_params *params,
                      const int16_t *image, int32_t y, struct ferrule_dual_depthwise *run)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows =
        ferrule_taps_inside(y, window->kernel_h, window->dilation_h, window->input_h);
    const int16_t *line =
        image + (y + rows.first * window->dilation_h) * window->input_w * window->input_c;
    int32_t last_x = window->input_w - 1 - (window->kernel_w - 1) * window->dilation_w;
    int32_t x = -window->pad_left;

    for (int32_t left = window->output_w; left > 0;) {
        int32_t pixels = 1;

        if (x >= 0 && x + window->stride_w <= last_x && left > 1) {
            int32_t inside = (last_x - x) / window->stride_w + 1;
            pixels = (inside < left ? inside : left) / 2 * 2;
        }
        set_taps(window, line, x, rows, run);
        run->count = pixels > 1 ? pixels / 2 : 1;
        run->next_bytes = pixels > 1 ? 2 * window->stride_w * window->input_c : 0;
        run->output_next = pixels > 1 ? 2 * window->input_c : 0;
        ferrule_dual_depthwise_s16(run);
        run->output += pixels * window->input_c;
        x += pixels * window->stride_w;
        left -= pixels;
    }
}

void ferrule_depthwise_conv2d_dual_s16(
    const struct ferrule_depthwise_conv2d_dual_s16_params *params, const int16_t *input,
    int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t row_words = (window->kernel_w + 1) / 2;
    int32_t row = window->output_w * window->input_c;
    struct ferrule_dual_depthwise run = {
        .column_bytes = 2 * window->dilation_w * window->input_c,
        .row_bytes = 2 * window->dilation_h * window->input_w * window->input_c,
        .stream = params->stream,
        .output = output,
        .channels = window->input_c,
        .scales = 4 * (2 + window->kernel_h * row_words),
        .clipped = params->low >= 0 ? 1 : 0,
    };

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            store_row(params, input, i * window->stride_h - window->pad_top, &run);
            ferrule_clamp_s16(run.output - row, row, params->low, params->high);
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}

/* Write each element `times` times. */
static void repeat(const int16_t *source, int32_t count, int32_t times, int16_t *target)
{
    if (times == 2) {
        for (; count > 0; --count) {
            const uint32_t both = ferrule_pair(*source, *source);

            FERRULE_COPY_WORD(target, &both);
            ++source;
            target += 2;
        }
        return;
    }
    for (; count > 0; --count) {
        for (int32_t i = 0; i < times; ++i) {
            *target++ = *source;
        }
        ++source;
    }
}

void ferrule_depthwise_conv2d_repeated_s16(
    const struct ferrule_depthwise_conv2d_repeated_s16_params *params, const int16_t *input,
    int16_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->whole.window;
    const int32_t line = window->input_w * window->input_c / params->depth_multiplier;
    struct ferrule_depthwise_conv2d_dual_s16_params strip = params->whole;

    strip.window.batches = 1;
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; i += params->rows) {
            const int32_t left = window->output_h - i;
            const int32_t rows = left < params->rows ? left : params->rows;
            const int32_t top = i * window->stride_h - window->pad_top;
            const int32_t bottom =
                top + (rows - 1) * window->stride_h + (window->kernel_h - 1) * window->dilation_h;
            const int32_t last = window->input_h - 1;
            const int32_t first = ferrule_clamp(top, 0, last);

            /* one row if all windows are beside the image */
            strip.window.input_h = ferrule_clamp(bottom, first, last) - first + 1;
            strip.window.output_h = rows;
            strip.window.pad_top = first - top;
            repeat(input + first * line, strip.window.input_h * line, params->depth_multiplier,
                   scratch);
            ferrule_depthwise_conv2d_dual_s16(&strip, scratch, output);
            output += rows * window->output_w * window->input_c;
        }
        input += window->input_h * line;
    }
}
