/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CONV_2D of two pixels and a block of channels at a time. Before inclusion, define FERRULE_KERNEL,
 * the kernel's name; FERRULE_IS_PLAIN, whether an output is plain; BLOCK, the channels of a block;
 * DATA, the type of the patches' elements; PUT(at, value, second), which writes the value of one of
 * the two pixels and moves `at` to the next product; and MULTIPLY(data, weights, products, scales,
 * first, second, output, plain), which computes and stores a block.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Write the values of one of the two pixels. */
static inline DATA *put_run(DATA *at, const int8_t *values, int32_t count, bool second)
{
    for (; count >= 4; count -= 4) {
        PUT(at, values[0], second);
        PUT(at, values[1], second);
        PUT(at, values[2], second);
        PUT(at, values[3], second);
        values += 4;
    }
    for (; count > 0; --count) {
        PUT(at, *values, second);
        values += 1;
    }
    return at;
}

static inline DATA *put_outside(DATA *at, int32_t value, int32_t count, bool second)
{
    for (; count > 0; --count) {
        PUT(at, value, second);
    }
    return at;
}

static inline void put_listed(DATA *at, const int8_t *pixel, const int16_t *inputs, int32_t count,
                              bool second)
{
    for (; count > 0; --count) {
        PUT(at, pixel[*inputs], second);
        inputs += 1;
    }
}

/* Collect the pixels under one position of the window. */
static inline void put_window(const struct ferrule_conv2d_blocks_s8_params *params,
                              const int8_t *image, int32_t y, int32_t x, DATA *at, bool second)
{
    const struct ferrule_window *window = &params->window;
    const int32_t outside = params->input_zero_point;
    const int32_t channels = window->input_c;
    const struct ferrule_taps inside =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        const int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h || inside.first == inside.end) {
            at = put_outside(at, outside, window->kernel_w * channels, second);
            continue;
        }
        at = put_outside(at, outside, inside.first * channels, second);
        const int32_t column = x + inside.first * window->dilation_w;
        const int8_t *source = image + (row * window->input_w + column) * channels;
        if (window->dilation_w == 1) {
            at = put_run(at, source, (inside.end - inside.first) * channels, second);
        } else {
            for (int32_t j = inside.first; j < inside.end; ++j) {
                at = put_run(at, source, channels, second);
                source += window->dilation_w * channels;
            }
        }
        at = put_outside(at, outside, (window->kernel_w - inside.end) * channels, second);
    }
}

/* Compute and store all channels of two pixels; for a single one, pass it twice. */
static inline void store_pixels(const struct ferrule_conv2d_blocks_s8_params *params,
                                const DATA *patches, int8_t *first, int8_t *second, bool plain)
{
    const struct ferrule_output_s8 output = params->output;
    const int32_t *scales = params->scales;
    const int8_t *weights = params->weights;
    const int32_t products = params->products;

    if (params->fixed != NULL) {
        (void)memcpy(first, params->fixed, (size_t)params->output_c);
        (void)memcpy(second, params->fixed, (size_t)params->output_c);
    }
    for (int32_t left = params->blocks; left > 0; --left) {
        MULTIPLY(patches, weights, products, scales, first, second, &output, plain);
        scales += BLOCK * FERRULE_PLAIN_SCALE_WORDS;
        weights += BLOCK * products;
    }
}

static inline void convolve_windows(const struct ferrule_conv2d_blocks_s8_params *params,
                                    const int8_t *input, int8_t *output, DATA *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    int8_t *first = output;
    bool waiting = false; /* whether a pixel is gathered but not computed */

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            const int32_t y = i * window->stride_h - window->pad_top;

            for (int32_t j = 0; j < window->output_w; ++j) {
                const int32_t x = j * window->stride_w - window->pad_left;

                if (waiting) {
                    put_window(params, input, y, x, patches, true);
                    store_pixels(params, patches, first, output, plain);
                } else {
                    put_window(params, input, y, x, patches, false);
                }
                waiting = !waiting;
                first = output;
                output += params->output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
    if (waiting) {
        store_pixels(params, patches, first, first, plain);
    }
}

static inline void put_pixel(const struct ferrule_conv2d_blocks_s8_params *params,
                             const int8_t *pixel, DATA *patches, bool second)
{
    if (params->inputs != NULL) {
        put_listed(patches, pixel, params->inputs, params->products, second);
    } else {
        (void)put_run(patches, pixel, params->window.input_c, second);
    }
}

static inline void convolve_pixels(const struct ferrule_conv2d_blocks_s8_params *params,
                                   const int8_t *input, int8_t *output, DATA *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    int32_t pixels = window->batches * window->output_h * window->output_w;

    for (; pixels > 1; pixels -= 2) {
        put_pixel(params, input, patches, false);
        put_pixel(params, input + window->input_c, patches, true);
        store_pixels(params, patches, output, output + params->output_c, plain);
        input += 2 * window->input_c;
        output += 2 * params->output_c;
    }
    if (pixels > 0) {
        put_pixel(params, input, patches, false);
        store_pixels(params, patches, output, output, plain);
    }
}

static inline void convolve(const struct ferrule_conv2d_blocks_s8_params *params,
                            const int8_t *input, int8_t *output, DATA *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;

    if (window->kernel_h * window->kernel_w == 1 && window->stride_h * window->stride_w == 1 &&
        window->output_h == window->input_h && window->output_w == window->input_w) {
        convolve_pixels(params, input, output, patches, plain);
    } else {
        convolve_windows(params, input, output, patches, plain);
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_blocks_s8_params *params, const int8_t *input,
                    int8_t *output, void *scratch)
{
    if (FERRULE_IS_PLAIN(&params->output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
