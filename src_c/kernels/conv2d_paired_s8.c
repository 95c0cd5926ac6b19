/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/conv2d.h"
#include "ferrule/kernels/paired_pixels.h"

/* Fill a row of the patch whose pixels lie outside the image. */
static int8_t *fill(int8_t *target, int32_t bytes, int32_t value)
{
    for (int32_t i = 0; i < bytes; ++i) {
        target[i] = (int8_t)value;
    }
    return target + bytes;
}

static int8_t *copy(int8_t *target, const int8_t *source, int32_t bytes)
{
    int32_t i = 0;

    for (; i + 4 <= bytes; i += 4) {
        memcpy(target + i, source + i, 4);
    }
    for (; i < bytes; ++i) {
        target[i] = source[i];
    }
    return target + bytes;
}

/* Collect the pixels under one window position, then widen them all. */
static void gather_bytes(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *image,
                         int32_t y, int32_t x, int8_t *bytes, uint32_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;
    struct ferrule_taps inside =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t row_bytes = (inside.end - inside.first) * channels;
    int8_t *at = bytes;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h || row_bytes == 0) {
            at = fill(at, window->kernel_w * channels, params->input_zero_point);
            continue;
        }
        const int8_t *source =
            image + (row * window->input_w + x + inside.first * window->dilation_w) * channels;
        at = fill(at, inside.first * channels, params->input_zero_point);
        if (window->dilation_w == 1) {
            at = copy(at, source, row_bytes);
        } else {
            for (int32_t j = inside.first; j < inside.end; ++j) {
                at = copy(at, source, channels);
                source += window->dilation_w * channels;
            }
        }
        at = fill(at, (window->kernel_w - inside.end) * channels, params->input_zero_point);
    }
    while (at != bytes + 4 * params->words) {
        *at++ = 0; /* its weights are 0 */
    }
    ferrule_widen(bytes, params->words, target, 4);
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

/* Widen the pixels under one window position straight from the image: channels come in fours. */
static void gather_words(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *image,
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

void ferrule_conv2d_paired_s8(const struct ferrule_conv2d_paired_s8_params *params,
                              const int8_t *input, int8_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    uint32_t *patches = scratch;
    int8_t *bytes = (int8_t *)(patches + 4 * params->words);
    int32_t positions = window->output_h * window->output_w;
    int32_t pixels = window->batches * positions;
    int32_t column = 0;
    int32_t y = -window->pad_top;
    int32_t waiting = 0; /* pixels gathered but not computed: 0 or 1 */

    for (int32_t i = 0; i < pixels; ++i) {
        int32_t x = column * window->stride_w - window->pad_left;

        if (window->input_c % 4 == 0) {
            gather_words(params, input, y, x, patches + waiting);
        } else {
            gather_bytes(params, input, y, x, bytes, patches + waiting);
        }
        if (++column == window->output_w) {
            column = 0;
            y += window->stride_h;
        }
        if (y == window->output_h * window->stride_h - window->pad_top && column == 0) {
            y = -window->pad_top;
            input += window->input_h * window->input_w * window->input_c;
        }
        waiting += 1;
        if (waiting == 2 || i + 1 == pixels) {
            int8_t *second = waiting == 2 ? output + params->output_c : output;

            ferrule_store_pixels_s8(patches, params->words, params->weights, params->channels,
                                    params->output_c, &params->output, output, second);
            output = second + params->output_c;
            waiting = 0;
        }
    }
}
