/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D of int16 data. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL             name of the kernel
 * FERRULE_STORE(params, pair) computes two pixels with sums of 32 bits
 */
#include "ferrule/kernels/dual_long_s16.inc.h"

/* Store an element of a patch whose words are `step` elements apart. */
static inline void put(int16_t *patch, int32_t step, int32_t at, int16_t element)
{
    patch[at / 2 * step + at % 2] = element;
}

/* Copy some elements to a patch; rows of a window are short, so memcpy is not called. */
static void copy(int16_t *patch, int32_t step, int32_t at, const int16_t *source, int32_t count)
{
    if (at % 2 != 0 && count > 0) {
        put(patch, step, at++, *source++);
        --count;
    }
    int16_t *target = patch + at / 2 * step;

    for (; count > 1; count -= 2) {
        FERRULE_COPY_WORD(target, source);
        target += step;
        source += 2;
    }
    if (count > 0) {
        *target = *source;
    }
}

static void clear(int16_t *patch, int32_t step, int32_t at, int32_t count)
{
    for (; count > 0; --count) {
        put(patch, step, at++, 0);
    }
}

/* Collect the pixels under one window position; those outside the image are zero. */
static void gather(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *image,
                   int32_t y, int32_t x, int16_t *patch, int32_t step)
{
    const struct ferrule_window *window = &params->window;
    int32_t channels = window->input_c;
    int32_t row_elements = window->kernel_w * channels;
    struct ferrule_taps inside =
        ferrule_taps_inside(x, window->kernel_w, window->dilation_w, window->input_w);
    int32_t count = inside.end - inside.first;

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        int32_t at = i * row_elements;
        int32_t row = y + i * window->dilation_h;
        int32_t column = x + inside.first * window->dilation_w;
        const int16_t *source = image + (row * window->input_w + column) * channels;

        if (row < 0 || row >= window->input_h || count == 0) {
            clear(patch, step, at, row_elements);
            continue;
        }
        if (count != window->kernel_w) {
            clear(patch, step, at, inside.first * channels);
            clear(patch, step, at + inside.end * channels,
                  (window->kernel_w - inside.end) * channels);
            at += inside.first * channels;
        }
        if (window->dilation_w == 1) {
            copy(patch, step, at, source, count * channels);
            continue;
        }
        for (int32_t j = 0; j < count; ++j) {
            copy(patch, step, at, source, channels);
            at += channels;
            source += window->dilation_w * channels;
        }
    }
}

/* Compute and store two pixels, or one that is given twice. */
static void store_both(const struct ferrule_conv2d_dual_s16_params *params, int16_t *patches,
                       int16_t *first, int16_t *second)
{
    int16_t *few = patches + 4 * params->steps; /* for fewer channels than a block has */
    struct ferrule_dual_pair pair = {
        .stream = params->stream,
        .patches = patches,
        .steps = params->steps,
        .first = first,
        .second = second,
        .channels = params->output_c,
        .clipped = params->low >= 0 ? 1 : 0,
    };

    if (params->output_c >= FERRULE_DUAL_CHANNELS) {
        FERRULE_STORE(params, &pair);
        return;
    }
    pair.channels = FERRULE_DUAL_CHANNELS;
    pair.first = few;
    pair.second = few + FERRULE_DUAL_CHANNELS;
    FERRULE_STORE(params, &pair);
    for (int32_t c = 0; c < params->output_c; ++c) {
        second[c] = pair.second[c];
        first[c] = pair.first[c];
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *input,
                    int16_t *output, void *scratch)
{
    const struct ferrule_window *window = &params->window;
    int16_t *patches = scratch;
    int16_t *waiting = NULL; /* the pixel whose window was read last, if it is not computed */
    int32_t pixels = window->batches * window->output_h * window->output_w;
    int32_t step = params->sums == FERRULE_DUAL_LONG ? 2 : 4;

    /* The weights of the element past the last product are zero, and the second pixel of the last
     * pair may not exist; what is read of both must be defined. */
    (void)memset(scratch, 0, (size_t)(step * params->steps) * sizeof *patches);
    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            for (int32_t j = 0; j < window->output_w; ++j) {
                gather(params, input, i * window->stride_h - window->pad_top,
                       j * window->stride_w - window->pad_left,
                       waiting == NULL ? patches : patches + 2, step);
                if (params->sums == FERRULE_DUAL_LONG) {
                    store_long(params, patches, output);
                } else if (waiting == NULL) {
                    waiting = output;
                } else {
                    store_both(params, patches, waiting, output);
                    waiting = NULL;
                }
                output += params->output_c;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
    }
    if (waiting != NULL) {
        store_both(params, patches, waiting, waiting);
    }
    if (params->sums != FERRULE_DUAL_LONG) {
        ferrule_clamp_s16(output - pixels * params->output_c, pixels * params->output_c,
                          params->low, params->high);
    }
}
