/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a pooling kernel of int16. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL  name of the kernel
 * FERRULE_VECTORS(run, count) computes pixels by vectors (MVE), for a window of `count` pixels
 * FERRULE_PAIRS(taps, first, pairs, output) stores pairs of channels before they are clamped, at
 *                 least one, if it has a way for the window, and returns whether it has (DSP
 *                 extension)
 * FERRULE_FOUR(taps, first, output) stores four channels before they are clamped
 * FERRULE_ONE(taps, first)          returns one channel
 *
 * where first is the first pixel under the window.
 */
static inline void store_pixel(const struct ferrule_pool2d_taps *taps, const int16_t *first,
                               int32_t channels, int16_t *output)
{
#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE
    if (channels > 1 && FERRULE_PAIRS(taps, first, channels / 2, output)) {
        first += channels / 2 * 2;
        output += channels / 2 * 2;
        channels %= 2;
    }
#endif
    for (; channels >= 4; channels -= 4) {
        FERRULE_FOUR(taps, first, output);
        first += 4;
        output += 4;
    }
    for (; channels > 0; --channels) {
        *output++ = (int16_t)FERRULE_ONE(taps, first);
        ++first;
    }
}

static void clamp(const struct ferrule_pool2d_params *params, int16_t *output, int32_t count)
{
    if (params->low == INT16_MIN && params->high == INT16_MAX) {
        return;
    }
    for (int32_t i = 0; i < count; ++i) {
        output[i] = (int16_t)ferrule_clamp(output[i], params->low, params->high);
    }
}

/* Neighbouring pixels whose windows have the same taps; `first` is under that of the first one. */
static void store_pixels(const struct ferrule_pool2d_params *params,
                         const struct ferrule_pool2d_taps *taps, const int16_t *first,
                         int32_t pixels, int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t channels = window->input_c;
    const int32_t step = window->stride_w * channels;

#if FERRULE_HAS_MVE
    if (window->kernel_h * window->kernel_w < FERRULE_POOL2D_MOST_DIVIDED) {
        struct ferrule_mve_depthwise_s16 run = {
            .data = first,
            .output = output,
            .channels = channels,
            .rows = taps->rows,
            .columns = taps->columns,
            .row_bytes = 2 * window->input_w * channels,
            .column_bytes = 2 * channels,
            .pixel_bytes = 2 * step,
            .low = params->low,
            .high = params->high,
            .pixels = pixels,
        };

        FERRULE_VECTORS(&run, taps->rows * taps->columns);
        return;
    }
#endif
    int16_t *pixel = output;

    for (int32_t i = pixels; i > 0; --i) {
        store_pixel(taps, first, channels, pixel);
        first += step;
        pixel += channels;
    }
    clamp(params, output, pixels * channels);
}

static void store_row(const struct ferrule_pool2d_params *params, const int16_t *image, int32_t y,
                      int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    const int16_t *line = image + (y + rows.first) * window->input_w * window->input_c;
    const int32_t last_x = window->input_w - window->kernel_w;
    int32_t x = -window->pad_left;
    int32_t pixels;

    for (int32_t left = window->output_w; left > 0; left -= pixels) {
        const struct ferrule_taps columns =
            ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
        const struct ferrule_pool2d_taps taps = {
            .rows = rows.end - rows.first,
            .columns = columns.end - columns.first,
            .step = window->input_c,
            .to_next_row = (window->input_w - (columns.end - columns.first)) * window->input_c,
        };

        pixels = 1;
        if (x >= 0 && x <= last_x) {
            const int32_t inside = (last_x - x) / window->stride_w + 1;

            pixels = inside < left ? inside : left;
        }
        store_pixels(params, &taps, line + (x + columns.first) * window->input_c, pixels, output);
        output += pixels * window->input_c;
        x += pixels * window->stride_w;
    }
}

void FERRULE_KERNEL(const struct ferrule_pool2d_params *params, const int16_t *input,
                    int16_t *output)
{
    const struct ferrule_window *window = &params->window;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            store_row(params, input, i * window->stride_h - window->pad_top, output);
            output += window->output_w * window->input_c;
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
