/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D with weights in pairs of channels, for each rule of rounding. A
 * kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STORE     returns a stored value, as ferrule_store_s8 does
 * FERRULE_IS_PLAIN  whether it may be called with `plain`
 */
#include "ferrule/kernels/conv2d.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

#include "ferrule/kernels/paired_pixels.inc.h"

/* Fill the pixels outside the image. */
static int8_t *fill(int8_t *target, int32_t bytes, int32_t value)
{
    (void)memset(target, value, (size_t)bytes);
    return target + bytes;
}

/* Rows of a window are short, so memcpy is not called. */
static inline int8_t *copy(int8_t *target, const int8_t *source, int32_t bytes)
{
    for (int32_t words = bytes / 4; words > 0; --words) {
        FERRULE_COPY_WORD(target, source);
        target += 4;
        source += 4;
    }
    if ((bytes & 2) != 0) {
        target[0] = source[0];
        target[1] = source[1];
        target += 2;
        source += 2;
    }
    if ((bytes & 1) != 0) {
        *target++ = *source;
    }
    return target;
}

/* Collect a row of pixels that are partly or wholly outside the image, or not contiguous. */
static int8_t *gather_row(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *image,
                          int32_t row, int32_t x, int8_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;

    for (int32_t j = 0; j < window->kernel_w; ++j) {
        int32_t column = x + j * window->dilation_w;

        if (row < 0 || row >= window->input_h || column < 0 || column >= window->input_w) {
            target = fill(target, channels, params->input_zero_point);
        } else {
            target = copy(target, image + (row * window->input_w + column) * channels, channels);
        }
    }
    return target;
}

/* Collect the pixels under one window position, then widen them all. */
static void gather_bytes(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *image,
                         int32_t y, int32_t x, int8_t *bytes, uint32_t *target)
{
    const struct ferrule_window *window = &params->window;
    int32_t row_bytes = window->kernel_w * window->input_c;
    int32_t line_bytes = window->input_w * window->input_c;
    bool whole = window->dilation_w == 1 && x >= 0 && x + window->kernel_w <= window->input_w;
    int8_t *at = bytes;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t row = y + i * window->dilation_h;

        if (whole && row >= 0 && row < window->input_h) {
            at = copy(at, image + row * line_bytes + x * window->input_c, row_bytes);
        } else {
            at = gather_row(params, image, row, x, at);
        }
    }
    fill(at, (int32_t)(bytes + 4 * params->paired.words - at), 0); /* their weights are 0 */
    ferrule_widen(bytes, params->paired.words, target, 4);
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

/* Widen the pixels under one window position directly from the image; the number of channels is a
 * multiple of four. */
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

static inline void convolve(const struct ferrule_conv2d_paired_s8_params *params,
                            const int8_t *input, int8_t *output, uint32_t *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    int8_t *bytes = (int8_t *)(patches + 4 * params->paired.words);
    int8_t *first = output;
    int32_t waiting = 0; /* pixels gathered but not computed: 0 or 1 */

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int32_t y = i * window->stride_h - window->pad_top;

            for (int32_t j = 0; j < window->output_w; ++j) {
                int32_t x = j * window->stride_w - window->pad_left;

                if (window->input_c % 4 == 0) {
                    gather_words(params, input, y, x, patches + waiting);
                } else {
                    gather_bytes(params, input, y, x, bytes, patches + waiting);
                }
                if (waiting != 0) {
                    ferrule_store_pixels_s8(&params->paired, patches, first, output, plain);
                }
                waiting ^= 1;
                first = output;
                output += params->paired.output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
    if (waiting != 0) {
        ferrule_store_pixels_s8(&params->paired, patches, first, first, plain);
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_paired_s8_params *params, const int8_t *input,
                    int8_t *output, void *scratch)
{
    if (FERRULE_IS_PLAIN(&params->paired.output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
