/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/mve_windows.h"

/* Collect one column of the windows. */
static inline int8_t *collect_column(const struct ferrule_mve_image *image,
                                     const struct ferrule_mve_band *band, int32_t x, int8_t *target)
{
    const struct ferrule_window *window = &image->window;
    int32_t channels = window->input_c;
    int32_t rows = band->inside.end - band->inside.first;

    if (x < 0 || x >= window->input_w || rows == 0) {
        return ferrule_mve_fill(target, window->kernel_h * channels, image->input_zero_point);
    }
    int32_t first_row = band->y + band->inside.first * window->dilation_h;
    const int8_t *source = band->pixels + (first_row * window->input_w + x) * channels;
    int32_t step = window->dilation_h * window->input_w * channels;

    if (rows != window->kernel_h) {
        target = ferrule_mve_fill(target, band->inside.first * channels, image->input_zero_point);
    }
    if (channels <= FERRULE_MVE_BYTES) {
        target = ferrule_mve_copy_rows(target, source, channels, rows, step);
    } else {
        for (int32_t i = 0; i < rows; ++i) {
            ferrule_mve_copy(target, source, channels);
            source += step;
            target += channels;
        }
    }
    if (rows != window->kernel_h) {
        target = ferrule_mve_fill(target, (window->kernel_h - band->inside.end) * channels,
                                  image->input_zero_point);
    }
    return target;
}

/* Collect adjacent columns of a row of the windows. */
static void collect_row(const struct ferrule_mve_image *image, const struct ferrule_mve_band *band,
                        int32_t tap, int32_t x, int32_t columns, int8_t *target)
{
    const struct ferrule_window *window = &image->window;
    int32_t channels = window->input_c;
    int32_t before = ferrule_clamp(-x, 0, columns);
    int32_t behind = ferrule_clamp(x + columns - window->input_w, 0, columns - before);
    bool inside = tap >= band->inside.first && tap < band->inside.end;
    int32_t copied = inside ? columns - before - behind : 0;

    if (copied != columns) {
        (void)ferrule_mve_fill(target, columns * channels, image->input_zero_point);
    }
    if (copied != 0) {
        int32_t row = band->y + tap * window->dilation_h;

        ferrule_mve_copy(target + before * channels,
                         band->pixels + (row * window->input_w + x + before) * channels,
                         copied * channels);
    }
}

/* Copy the windows of `count` pixels from rows that lie in scratch. */
static void copy_windows(const struct ferrule_window *window, const int8_t *strip,
                         int32_t strip_bytes, int32_t count, int8_t *target)
{
    int32_t row_bytes = window->kernel_w * window->input_c;
    int32_t pixel_bytes = window->stride_w * window->input_c;
#if FERRULE_HAS_MVE
    const int8_t *source;

    /* The bytes behind a row are replaced by the next one, or have weights of 0. */
    __asm__ volatile(
        "1:\n\t"
        "dls lr, %[rows]\n\t"
        "mov %[source], %[strip]\n\t"
        "2:\n\t"
        "vldrb.u8 q0, [%[source]]\n\t"
        "add %[source], %[source], %[strip_bytes]\n\t"
        "vstrb.8 q0, [%[target]]\n\t"
        "add %[target], %[target], %[row_bytes]\n\t"
        "le lr, 2b\n\t"
        "add %[strip], %[strip], %[pixel_bytes]\n\t"
        "subs %[count], %[count], #1\n\t"
        "bne 1b\n\t"
        : [target] "+r"(target), [strip] "+r"(strip), [source] "=&r"(source), [count] "+r"(count)
        : [rows] "r"(window->kernel_h), [strip_bytes] "r"(strip_bytes), [row_bytes] "r"(row_bytes),
          [pixel_bytes] "r"(pixel_bytes)
        : "cc", "lr", "q0", "memory");
#else
    for (; count > 0; --count) {
        target = ferrule_mve_copy_rows(target, strip, row_bytes, window->kernel_h, strip_bytes);
        strip += pixel_bytes;
    }
#endif
}

/* Collect the rows under the windows of `count` pixels behind the windows, then the windows. */
static void collect_by_rows(const struct ferrule_mve_image *image,
                            const struct ferrule_mve_band *band, int32_t x, int32_t count,
                            int8_t *target)
{
    const struct ferrule_window *window = &image->window;
    int32_t channels = window->input_c;
    int32_t columns = (count - 1) * window->stride_w + window->kernel_w;
    int8_t *strip =
        target + image->pixels * window->kernel_h * window->kernel_w * channels + FERRULE_MVE_BYTES;
    int8_t *at = strip;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        collect_row(image, band, i, x, columns, at);
        at += columns * channels;
    }
    copy_windows(window, strip, columns * channels, count, target);
}

/* Collect the windows of `count` pixels, the first of which begins at column x. */
static void collect(const struct ferrule_mve_image *image, const struct ferrule_mve_band *band,
                    int32_t x, int32_t count, int8_t *target)
{
    const struct ferrule_window *window = &image->window;

    if (image->by_rows == 0 && image->shared != 0 && window->kernel_h == 1) {
        collect_row(image, band, 0, x, (count - 1) * window->stride_w + window->kernel_w, target);
        return;
    }
    if (image->by_rows != 0) {
        collect_by_rows(image, band, x, count, target);
        return;
    }
    if (image->shared != 0) {
        int32_t end = x + (count - 1) * window->stride_w + window->kernel_w;

        for (; x < end; ++x) {
            target = collect_column(image, band, x, target);
        }
        return;
    }
    for (; count > 0; --count) {
        for (int32_t j = 0; j < window->kernel_w; ++j) {
            target = collect_column(image, band, x + j * window->dilation_w, target);
        }
        x += window->stride_w;
    }
}

int32_t ferrule_mve_collect(const struct ferrule_mve_image *image, const int8_t *input,
                            struct ferrule_mve_batch *next, void *scratch)
{
    const struct ferrule_window *window = &image->window;
    struct ferrule_mve_band band = {.pixels = input};

    if (next->column >= window->output_w) {
        next->column = 0;
        ++next->row;
    }
    if (next->row == window->batches * window->output_h) {
        return 0;
    }
    int32_t left = window->output_w - next->column;
    int32_t count = left < image->pixels ? left : image->pixels;

    band.pixels +=
        next->row / window->output_h * window->input_h * window->input_w * window->input_c;
    band.y = next->row % window->output_h * window->stride_h - window->pad_top;
    band.inside =
        ferrule_taps_inside(band.y, window->kernel_h, window->dilation_h, window->input_h);
    collect(image, &band, next->column * window->stride_w - window->pad_left, count, scratch);
    next->column += count;
    return count;
}
