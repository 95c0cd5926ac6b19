/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a pooling kernel of int16. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL  name of the kernel
 * FERRULE_VECTORS(run, count) computes pixels by vectors (MVE), for a window of `count` pixels
 * FERRULE_FOUR(taps, first, output) stores four channels before they are clamped
 * FERRULE_ONE(taps, first)          returns one channel
 *
 * where first is the first pixel under the window.
 */
#if FERRULE_HAS_MVE

static void store_row(const struct ferrule_pool2d_params *params, const int16_t *image, int32_t y,
                      int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    int32_t pixel_bytes = 2 * window->input_c;
    int32_t last_x = window->input_w - window->kernel_w;
    int32_t x = -window->pad_left;
    struct ferrule_mve_depthwise_s16 run = {
        .output = output,
        .channels = window->input_c,
        .rows = rows.end - rows.first,
        .row_bytes = window->input_w * pixel_bytes,
        .column_bytes = pixel_bytes,
        .pixel_bytes = window->stride_w * pixel_bytes,
        .low = params->low,
        .high = params->high,
    };

    for (int32_t left = window->output_w; left > 0; left -= run.pixels) {
        struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);

        run.pixels = 1;
        if (x >= 0 && x <= last_x) {
            int32_t inside = (last_x - x) / window->stride_w + 1;
            run.pixels = inside < left ? inside : left;
        }
        run.columns = columns.end - columns.first;
        run.data =
            image + ((y + rows.first) * window->input_w + x + columns.first) * window->input_c;
        FERRULE_VECTORS(&run, run.rows * run.columns);
        run.output += run.pixels * run.channels;
        x += run.pixels * window->stride_w;
    }
}

#endif

static void store_pixel(const struct ferrule_pool2d_params *params, const int16_t *image, int32_t y,
                        struct ferrule_taps rows, int32_t x, int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    struct ferrule_taps columns = ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);
    const struct ferrule_pool2d_taps taps = {
        .rows = rows.end - rows.first,
        .columns = columns.end - columns.first,
        .step = window->input_c,
        .to_next_row = (window->input_w - (columns.end - columns.first)) * window->input_c,
    };
    const int16_t *first =
        image + ((y + rows.first) * window->input_w + x + columns.first) * window->input_c;
    int32_t left = window->input_c;

    for (; left >= 4; left -= 4) {
        FERRULE_FOUR(&taps, first, output);
        first += 4;
        output += 4;
    }
    for (; left > 0; --left) {
        *output++ = (int16_t)FERRULE_ONE(&taps, first);
        ++first;
    }
}

static void clamp_row(const struct ferrule_pool2d_params *params, int16_t *output, int32_t count)
{
    if (params->low == INT16_MIN && params->high == INT16_MAX) {
        return;
    }
    for (int32_t i = 0; i < count; ++i) {
        output[i] = (int16_t)ferrule_clamp(output[i], params->low, params->high);
    }
}

void FERRULE_KERNEL(const struct ferrule_pool2d_params *params, const int16_t *input,
                    int16_t *output)
{
    const struct ferrule_window *window = &params->window;
    int32_t row = window->output_w * window->input_c;

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int32_t y = i * window->stride_h - window->pad_top;
            struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
#if FERRULE_HAS_MVE
            if (window->kernel_h * window->kernel_w < FERRULE_POOL2D_MOST_DIVIDED) {
                store_row(params, input, y, output);
                output += row;
                continue;
            }
#endif
            for (int32_t j = 0; j < window->output_w; ++j) {
                store_pixel(params, input, y, rows, j * window->stride_w - window->pad_left,
                            output + j * window->input_c);
            }
            clamp_row(params, output, row);
            output += row;
        }
        input += window->input_h * window->input_w * window->input_c;
    }
}
