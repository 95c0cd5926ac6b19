/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/mve_windows.h"

/* A row of windows: the image, its first row under them, and the taps that are inside it. */
struct band {
    const int8_t *pixels;
    int32_t y;
    struct ferrule_taps inside;
};

static void plan_lanes(const struct ferrule_mve_image *image, struct ferrule_mve_lanes *lanes)
{
    const struct ferrule_window *window = &image->window;
    int32_t channels = window->input_c;
    int32_t columns = FERRULE_MVE_LANES_8 / channels;

    lanes->source_step =
        (image->advance != 0 ? window->dilation_w : window->stride_w) * image->view.pixel_c;
    lanes->target_step = window->kernel_h * channels * (image->advance != 0 ? 1 : window->kernel_w);
    lanes->columns = 0;
    if (channels > FERRULE_MVE_LANES_16) {
        return;
    }
    lanes->wide =
        columns * lanes->source_step > UINT8_MAX || columns * lanes->target_step > UINT8_MAX;
    if (lanes->wide) {
        columns = FERRULE_MVE_LANES_16 / channels;
        if (columns * lanes->source_step > UINT16_MAX ||
            columns * lanes->target_step > UINT16_MAX) {
            return;
        }
    }
    lanes->columns = columns;
    for (int32_t k = 0; k < (lanes->wide ? FERRULE_MVE_LANES_16 : FERRULE_MVE_LANES_8); ++k) {
        int32_t lane = k < columns * channels ? k : 0;
        int32_t source = lane / channels * lanes->source_step + lane % channels;
        int32_t target = lane / channels * lanes->target_step + lane % channels;

        if (lanes->wide) {
            lanes->source_16[k] = (uint16_t)source;
            lanes->target_16[k] = (uint16_t)target;
        } else {
            lanes->source_8[k] = (uint8_t)source;
            lanes->target_8[k] = (uint8_t)target;
        }
    }
}

/* Rows of columns that lie inside the image. */
struct columns {
    int32_t passes;      /* whole ones of the lanes */
    int32_t rest;        /* bytes behind them */
    int32_t source_line; /* bytes to the next row */
    int32_t channels;    /* bytes from a row to the next one in scratch */
    int32_t rows;        /* at least 1 */
};

#if FERRULE_HAS_MVE
_Static_assert(offsetof(struct columns, source_line) == 8, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_lanes, target_8) ==
                   offsetof(struct ferrule_mve_lanes, source_8) + 16,
               "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_lanes, target_16) ==
                   offsetof(struct ferrule_mve_lanes, source_16) + 16,
               "used in the assembler below");

/* Of each row, copy whole passes of the lanes, then `rest` bytes of one more. The offsets of 8 or
 * 16 bits are in q1 and q2. */
#define COPY_LANES(load_offsets, load, store, loop, first)                                         \
    __asm__ volatile(                                                                              \
        load_offsets " q1, [%[offsets]]\n\t" load_offsets " q2, [%[offsets], #16]\n\t"             \
                     "0:\n\t"                                                                      \
                     "ldrd %[left], %[rest], [%[columns]]\n\t"                                     \
                     "mov %[from], %[source]\n\t"                                                  \
                     "mov %[to], %[target]\n\t"                                                    \
                     "cbz %[left], 2f\n\t"                                                         \
                     "1:\n\t" load " q0, [%[from], q1]\n\t"                                        \
                     "add %[from], %[from], %[source_step]\n\t"                                    \
                     "subs %[left], %[left], #1\n\t" store " q0, [%[to], q2]\n\t"                  \
                     "add %[to], %[to], %[target_step]\n\t"                                        \
                     "bne 1b\n\t"                                                                  \
                     "2:\n\t" loop " lr, %[rest], 4f\n\t"                                          \
                     "3:\n\t" load " q0, [%[from], q1]\n\t" store " q0, [%[to], q2]\n\t"           \
                     "letp lr, 3b\n\t"                                                             \
                     "4:\n\t"                                                                      \
                     "ldrd %[left], %[rest], [%[columns], #8]\n\t"                                 \
                     "subs %[rows], %[rows], #1\n\t"                                               \
                     "add %[source], %[source], %[left]\n\t"                                       \
                     "add %[target], %[target], %[rest]\n\t"                                       \
                     "bne 0b\n\t"                                                                  \
        : [target] "+r"(target), [source] "+r"(source), [to] "=&l"(to), [from] "=&l"(from),        \
          [left] "=&l"(left), [rest] "=&r"(rest), [rows] "+r"(rows)                                \
        : [offsets] "r"(first), [columns] "r"(columns), [source_step] "r"(source_step),            \
          [target_step] "r"(target_step)                                                           \
        : "cc", "lr", "q0", "q1", "q2", "memory")
#endif

/* Collect several columns at once. */
static inline void collect_lanes(const struct ferrule_mve_lanes *lanes,
                                 const struct columns *columns, const int8_t *source,
                                 int8_t *target)
{
    int32_t source_step = lanes->columns * lanes->source_step;
    int32_t target_step = lanes->columns * lanes->target_step;
    int32_t rows = columns->rows;
#if FERRULE_HAS_MVE
    const int8_t *from;
    int8_t *to;
    int32_t left;
    int32_t rest;

    if (lanes->wide) {
        COPY_LANES("vldrh.u16", "vldrb.u16", "vstrb.16", "wlstp.16", lanes->source_16);
    } else {
        COPY_LANES("vldrb.u8", "vldrb.u8", "vstrb.8", "wlstp.8", lanes->source_8);
    }
#else
    for (; rows > 0; --rows) {
        for (int32_t pass = 0; pass <= columns->passes; ++pass) {
            int32_t all = lanes->wide ? FERRULE_MVE_LANES_16 : FERRULE_MVE_LANES_8;

            for (int32_t k = 0; k < (pass < columns->passes ? all : columns->rest); ++k) {
                target[pass * target_step +
                       (lanes->wide ? lanes->target_16[k] : lanes->target_8[k])] =
                    source[pass * source_step +
                           (lanes->wide ? lanes->source_16[k] : lanes->source_8[k])];
            }
        }
        source += columns->source_line;
        target += columns->channels;
    }
#endif
}

/* Collect `count` columns that lie inside the image, row by row, from column x on. */
static void collect_columns(const struct ferrule_mve_image *image,
                            const struct ferrule_mve_lanes *lanes, const struct band *band,
                            int32_t x, int32_t count, int8_t *target)
{
    const struct ferrule_window *window = &image->window;
    int32_t channels = window->input_c;
    int32_t pixel_c = image->view.pixel_c;
    int32_t row = band->y + band->inside.first * window->dilation_h;
    const int8_t *source = band->pixels + (row * window->input_w + x) * pixel_c;
    struct columns columns = {
        .source_line = window->dilation_h * window->input_w * pixel_c,
        .channels = channels,
        .rows = band->inside.end - band->inside.first,
    };

    target += band->inside.first * channels;
    if (columns.rows <= 0) {
        return;
    }
    if (lanes->columns != 0 && (lanes->source_step != channels || lanes->target_step != channels)) {
        columns.passes = count / lanes->columns;
        columns.rest = (count - columns.passes * lanes->columns) * channels;
        collect_lanes(lanes, &columns, source, target);
        return;
    }
    for (int32_t i = 0; i < columns.rows; ++i) {
        if (lanes->source_step == channels && lanes->target_step == channels) {
            ferrule_mve_copy(target, source, count * channels);
        } else {
            ferrule_mve_copy_apart(target, lanes->target_step, source, lanes->source_step, channels,
                                   count);
        }
        source += columns.source_line;
        target += channels;
    }
}

/* Collect the windows of `count` pixels, the first of which begins at column x: all columns under
 * them if they share columns, otherwise one column of each window after the other. */
static void collect(const struct ferrule_mve_image *image, const struct ferrule_mve_lanes *lanes,
                    const struct band *band, int32_t x, int32_t count, int8_t *target)
{
    const struct ferrule_window *window = &image->window;
    int32_t column_bytes = window->kernel_h * window->input_c;
    bool shared = image->advance != 0;
    int32_t apart = shared ? window->dilation_w : window->stride_w;
    int32_t taps = shared ? 1 : window->kernel_w;
    int32_t columns = shared ? (count - 1) * image->advance + window->kernel_w : count;
    int32_t last = x + (columns - 1) * apart + (taps - 1) * window->dilation_w;

    if (x < 0 || last >= window->input_w ||
        band->inside.end - band->inside.first != window->kernel_h) {
        (void)ferrule_mve_fill(target, columns * lanes->target_step, image->input_zero_point);
    }
    for (int32_t j = 0; j < taps; ++j) {
        struct ferrule_taps inside = ferrule_taps_inside(x, columns, apart, window->input_w);

        if (inside.first < inside.end) {
            collect_columns(image, lanes, band, x + inside.first * apart, inside.end - inside.first,
                            target + inside.first * lanes->target_step);
        }
        target += column_bytes;
        x += window->dilation_w;
    }
}

/* Go to the next windows; return whether there are any. */
static bool advance(const struct ferrule_mve_image *image, struct ferrule_mve_batch *batch)
{
    const struct ferrule_window *window = &image->window;

    if (batch->count == 0) {
        plan_lanes(image, &batch->lanes);
        return true;
    }
    if (++batch->group == image->view.groups) {
        batch->group = 0;
        batch->column += batch->count * image->apart;
        if (batch->column >= window->output_w) {
            ++batch->turn;
            if (batch->turn == image->apart) {
                batch->turn = 0;
                ++batch->row;
            }
            batch->column = batch->turn;
        }
    }
    return batch->row < window->batches * window->output_h;
}

int32_t ferrule_mve_collect(const struct ferrule_mve_image *image, const int8_t *input,
                            struct ferrule_mve_batch *batch, void *scratch)
{
    const struct ferrule_window *window = &image->window;
    struct band band;

    if (!advance(image, batch)) {
        return 0;
    }
    int32_t left = (window->output_w - batch->column + image->apart - 1) / image->apart;
    int32_t number = batch->row / window->output_h; /* of the image */

    batch->count = left < image->pixels ? left : image->pixels;
    band.pixels = input + batch->group * window->input_c +
                  number * window->input_h * window->input_w * image->view.pixel_c;
    band.y = (batch->row - number * window->output_h) * window->stride_h - window->pad_top;
    band.inside =
        ferrule_taps_inside(band.y, window->kernel_h, window->dilation_h, window->input_h);
    collect(image, &batch->lanes, &band, batch->column * window->stride_w - window->pad_left,
            batch->count, scratch);
    return batch->count;
}
