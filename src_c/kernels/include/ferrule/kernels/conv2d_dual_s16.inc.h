/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of CONV_2D of int16 data. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL             name of the kernel
 * FERRULE_WHOLE              name of its part for windows over all channels
 * FERRULE_GROUPS             name of its part for groups of channels
 * FERRULE_STORE(params, pair) computes two pixels with sums of 32 bits
 */
#include "ferrule/kernels/dual_long_s16.inc.h"

/* Compilers call the functions of a pixel otherwise, which costs up to a tenth, and repeat that of
 * a group, which costs flash. */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline
#define NEVER_INLINE  __attribute__((noinline)) static

/* A pixel of the output, and its window. */
struct pixel {
    const int16_t *image;
    int32_t y; /* of the window, maybe outside, as x */
    int32_t x;
    int32_t row; /* of the output, as column */
    int32_t column;
    int16_t *output;
};

/* Move on to the next pixel, maybe of the next image. */
ALWAYS_INLINE void move_on(const struct ferrule_conv2d_dual_s16_params *params, struct pixel *pixel)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_view *view = &params->view;

    pixel->x += window->stride_w;
    pixel->output += view->column;
    if (++pixel->column < window->output_w) {
        return;
    }
    pixel->column = 0;
    pixel->x = -window->pad_left;
    pixel->y += window->stride_h;
    pixel->output += view->row - window->output_w * view->column;
    if (++pixel->row < window->output_h) {
        return;
    }
    pixel->row = 0;
    pixel->y = -window->pad_top;
    pixel->output += view->image - window->output_h * view->row;
    pixel->image += window->input_h * window->input_w * view->pixel_c;
}

/* Store an element of a patch whose words are `step` elements apart. */
static inline void put(int16_t *patch, int32_t step, int32_t at, int16_t element)
{
    patch[at / 2 * step + at % 2] = element;
}

/* Copy some elements to a patch; rows of a window are short, so memcpy is not called. */
ALWAYS_INLINE void copy(int16_t *patch, int32_t step, int32_t at, const int16_t *source,
                        int32_t count)
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

/* Collect channels of the pixels under the window at `y` and `x`, from the channel `first` on;
 * those outside the image are zero. */
ALWAYS_INLINE void gather(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *image,
                          int32_t y, int32_t x, int32_t first, int16_t *patch, int32_t step)
{
    const struct ferrule_window *window = &params->window;
    const int32_t kernel_w = window->kernel_w;
    const int32_t dilation_w = window->dilation_w;
    const int32_t channels = window->input_c;
    const int32_t row_elements = kernel_w * channels;
    const int32_t tap_step = dilation_w * params->view.pixel_c;
    const int32_t row_step = window->dilation_h * window->input_w * params->view.pixel_c;
    struct ferrule_taps inside = {0, kernel_w};
    int32_t row = y;
    int32_t place = (row * window->input_w + x) * params->view.pixel_c + first;
    int32_t begin = 0;
    int32_t count;

    if (x < 0 || x + (kernel_w - 1) * dilation_w >= window->input_w) {
        inside = ferrule_taps_inside(x, kernel_w, dilation_w, window->input_w);
        place += inside.first * tap_step;
    }
    count = inside.end - inside.first;
    for (int32_t i = window->kernel_h; i > 0; --i) {
        int32_t at = begin;

        if (row < 0 || row >= window->input_h || count == 0) {
            clear(patch, step, at, row_elements);
        } else {
            const int16_t *source = image + place;

            if (count != kernel_w) {
                clear(patch, step, at, inside.first * channels);
                clear(patch, step, at + inside.end * channels, (kernel_w - inside.end) * channels);
                at += inside.first * channels;
            }
            if (tap_step == channels) {
                copy(patch, step, at, source, count * channels);
            } else {
                for (int32_t j = count; j > 0; --j) {
                    copy(patch, step, at, source, channels);
                    at += channels;
                    source += tap_step;
                }
            }
        }
        begin += row_elements;
        row += window->dilation_h;
        place += row_step;
    }
}

/* Compute and store a group of two pixels, or of one that is given twice. */
ALWAYS_INLINE void store_both(const struct ferrule_conv2d_dual_s16_params *params,
                              const int32_t *stream, int16_t *patches, int16_t *first,
                              int16_t *second)
{
    int16_t *few = patches + 4 * params->steps; /* for fewer channels than a block has */
    struct ferrule_dual_pair pair = {
        .stream = stream,
        .patches = patches,
        .steps = params->steps,
        .first = first,
        .second = second,
        .channels = params->output_c,
        .clipped = params->low >= 0 ? 1 : 0,
    };

    if (params->output_c >= FERRULE_DUAL_CHANNELS) {
        FERRULE_STORE(params, &pair);
    } else {
        pair.channels = FERRULE_DUAL_CHANNELS;
        pair.first = few;
        pair.second = few + FERRULE_DUAL_CHANNELS;
        FERRULE_STORE(params, &pair);
        for (int32_t c = 0; c < params->output_c; ++c) {
            second[c] = pair.second[c];
            first[c] = pair.first[c];
        }
    }
}

NEVER_INLINE void gather_group(const struct ferrule_conv2d_dual_s16_params *params,
                               const struct pixel *pixel, int32_t first, int16_t *patch,
                               int32_t step)
{
    gather(params, pixel->image, pixel->y, pixel->x, first, patch, step);
}

/* Compute and store all groups of a pixel, or of two with sums of 32 bits. */
static void store_groups(const struct ferrule_conv2d_dual_s16_params *params,
                         const struct pixel *first, const struct pixel *second, int16_t *patches)
{
    const bool is_long = params->sums == FERRULE_DUAL_LONG;
    const int32_t *stream = params->stream;
    int32_t place = 0;
    int32_t channel = 0;

    for (int32_t left = params->view.groups; left > 0; --left) {
        gather_group(params, first, channel, patches, is_long ? 2 : 4);
        if (is_long) {
            store_long(params, stream, patches, first->output + place);
        } else {
            if (second != first) {
                gather_group(params, second, channel, patches + 2, 4);
            }
            store_both(params, stream, patches, first->output + place, second->output + place);
        }
        stream += params->words;
        place += params->view.group_output;
        channel += params->window.input_c;
    }
}

/* Clamp the stored outputs of a pixel to limits that the assembler does not know. */
static void clamp_groups(const struct ferrule_conv2d_dual_s16_params *params, int16_t *output)
{
    for (int32_t g = 0; g < params->view.groups; ++g) {
        ferrule_clamp_s16(output, params->output_c, params->low, params->high);
        output += params->view.group_output;
    }
}

void FERRULE_GROUPS(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *input,
                    int16_t *output, int16_t *patches)
{
    const struct ferrule_window *window = &params->window;
    const bool is_long = params->sums == FERRULE_DUAL_LONG;
    const bool limited = !is_long && ferrule_limits_s16(params->low, params->high);
    struct pixel first = {
        .image = input,
        .y = -window->pad_top,
        .x = -window->pad_left,
        .output = output,
    };
    struct pixel second;
    int32_t left = window->batches * window->output_h * window->output_w;

    while (left > 0) {
        const bool single = is_long || left == 1;

        second = first;
        if (!single) {
            move_on(params, &second);
        }
        store_groups(params, &first, single ? &first : &second, patches);
        if (limited) {
            clamp_groups(params, first.output);
            clamp_groups(params, second.output);
        }
        first = second;
        move_on(params, &first);
        left -= single ? 1 : 2;
    }
}

/* Compute and store two pixels whose patches are there, or one that is given twice. */
static void store_limited(const struct ferrule_conv2d_dual_s16_params *params, int16_t *patches,
                          int16_t *first, int16_t *second)
{
    store_both(params, params->stream, patches, first, second);
    if (ferrule_limits_s16(params->low, params->high)) {
        ferrule_clamp_s16(first, params->output_c, params->low, params->high);
        ferrule_clamp_s16(second, params->output_c, params->low, params->high);
    }
}

void FERRULE_WHOLE(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *input,
                   int16_t *output, int16_t *patches)
{
    const struct ferrule_window *window = &params->window;
    const int32_t step = params->sums == FERRULE_DUAL_LONG ? 2 : 4;
    int16_t *waiting = NULL; /* the pixel whose window was read last, if it is not computed */

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            int16_t *pixel = output + i * params->view.row;

            for (int32_t j = 0; j < window->output_w; ++j) {
                gather(params, input, i * window->stride_h - window->pad_top,
                       j * window->stride_w - window->pad_left, 0,
                       waiting == NULL ? patches : patches + 2, step);
                if (step == 2) {
                    store_long(params, params->stream, patches, pixel);
                } else if (waiting == NULL) {
                    waiting = pixel;
                } else {
                    store_limited(params, patches, waiting, pixel);
                    waiting = NULL;
                }
                pixel += params->view.column;
            }
        }
        input += window->input_h * window->input_w * window->input_c;
        output += params->view.image;
    }
    if (waiting != NULL) {
        store_limited(params, patches, waiting, waiting);
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_dual_s16_params *params, const int16_t *input,
                    int16_t *output, void *scratch)
{
    bool more = true;

    for (; more; ++params) {
        const int32_t step = params->sums == FERRULE_DUAL_LONG ? 2 : 4;

        /* The weights of the element past the last product are zero, and the second pixel of the
         * last pair may not exist; what is read of both must be defined. */
        (void)memset(scratch, 0, (size_t)(step * params->steps) * sizeof(int16_t));
        params->convolve(params, input, output + params->view.first, scratch);
        more = params->view.more != 0;
    }
}
