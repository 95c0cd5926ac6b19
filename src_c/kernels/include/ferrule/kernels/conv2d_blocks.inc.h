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

/* A position of the window: its first pixel in the image, and the place of its output pixel. */
struct position {
    const int8_t *image;
    int32_t y;
    int32_t x;
    int8_t *output;
};

/* Collect the pixels under a position of the window. */
static inline void put_window(const struct ferrule_conv2d_blocks_s8_params *params,
                              const struct position *position, int32_t group, DATA *at, bool second)
{
    const struct ferrule_window *window = &params->window;
    const int32_t outside = params->input_zero_point;
    const int32_t channels = window->input_c;
    const int32_t pixel_c = params->view.pixel_c;
    const int8_t *image = position->image + group * channels;
    const struct ferrule_taps inside =
        ferrule_taps_inside(position->x, window->kernel_w, window->dilation_w, window->input_w);

    for (int32_t i = 0; i < window->kernel_h; ++i) {
        const int32_t row = position->y + i * window->dilation_h;

        if (row < 0 || row >= window->input_h || inside.first == inside.end) {
            at = put_outside(at, outside, window->kernel_w * channels, second);
            continue;
        }
        at = put_outside(at, outside, inside.first * channels, second);
        const int32_t column = position->x + inside.first * window->dilation_w;
        const int8_t *source = image + (row * window->input_w + column) * pixel_c;
        if (window->dilation_w == 1 && pixel_c == channels) {
            at = put_run(at, source, (inside.end - inside.first) * channels, second);
        } else {
            for (int32_t j = inside.first; j < inside.end; ++j) {
                at = put_run(at, source, channels, second);
                source += window->dilation_w * pixel_c;
            }
        }
        at = put_outside(at, outside, (window->kernel_w - inside.end) * channels, second);
    }
}

/* Whether the window at a position lies in the image. */
static inline bool is_inside(const struct ferrule_window *window, const struct position *position)
{
    const int32_t reach_y = (window->kernel_h - 1) * window->dilation_h;
    const int32_t reach_x = (window->kernel_w - 1) * window->dilation_w;

    return position->y >= 0 && position->x >= 0 && position->y + reach_y < window->input_h &&
           position->x + reach_x < window->input_w;
}

/* Write the values of both pixels, the first one's before it is added to. */
#define PUT_BOTH(k)                                                                                \
    do {                                                                                           \
        DATA *place = at;                                                                          \
                                                                                                   \
        PUT(at, pixel[k], false);                                                                  \
        PUT(place, second_pixel[k], true);                                                         \
    } while (false)

/* Collect the pixels under two positions whose windows lie in the image. */
static inline void put_both_windows(const struct ferrule_conv2d_blocks_s8_params *params,
                                    const struct position *first, const struct position *second,
                                    int32_t group, DATA *at)
{
    const struct ferrule_window *window = &params->window;
    const int32_t channels = window->input_c;
    const int32_t pixel_c = params->view.pixel_c;
    const int32_t line = window->input_w * pixel_c;
    const bool joined = window->dilation_w == 1 && pixel_c == channels;
    const int32_t runs = joined ? 1 : window->kernel_w;
    const int32_t bytes = joined ? window->kernel_w * channels : channels;
    const int8_t *row = first->image + group * channels + first->y * line + first->x * pixel_c;
    const int8_t *second_row =
        second->image + group * channels + second->y * line + second->x * pixel_c;
    const int32_t apart = (int32_t)(second_row - row);

    for (int32_t i = window->kernel_h; i > 0; --i) {
        const int8_t *start = row;

        for (int32_t j = runs; j > 0; --j) {
            const int8_t *pixel = start;
            const int8_t *second_pixel = start + apart;
            int32_t count = bytes;

            for (; count >= 4; count -= 4) {
                PUT_BOTH(0);
                PUT_BOTH(1);
                PUT_BOTH(2);
                PUT_BOTH(3);
                pixel += 4;
                second_pixel += 4;
            }
            for (; count > 0; --count) {
                PUT_BOTH(0);
                pixel += 1;
                second_pixel += 1;
            }
            start += window->dilation_w * pixel_c;
        }
        row += window->dilation_h * line;
    }
}

/* Compute and store all channels of a group for two pixels; for a single one, pass it twice. */
static inline void store_pixels(const struct ferrule_conv2d_blocks_s8_params *params, int32_t group,
                                const DATA *patches, int8_t *first, int8_t *second, bool plain)
{
    const struct ferrule_output_s8 output = params->output;
    const int32_t products = params->products;
    const int32_t before = group * params->blocks * BLOCK; /* channels of other groups */
    const int32_t *scales = params->scales + before * FERRULE_PLAIN_SCALE_WORDS;
    const int8_t *weights = params->weights + before * products;

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

/* The same for positions of the window; for a single one, pass it twice. */
static inline void store_windows(const struct ferrule_conv2d_blocks_s8_params *params,
                                 const struct position *first, const struct position *second,
                                 DATA *patches, bool plain)
{
    const bool inside = is_inside(&params->window, first) && is_inside(&params->window, second);

    for (int32_t g = 0; g < params->view.groups; ++g) {
        if (inside) {
            put_both_windows(params, first, second, g, patches);
        } else {
            put_window(params, first, g, patches, false);
            if (first != second) {
                put_window(params, second, g, patches, true);
            }
        }
        store_pixels(params, g, patches, first->output, second->output, plain);
    }
}

static inline void convolve_windows(const struct ferrule_conv2d_blocks_s8_params *params,
                                    const int8_t *input, int8_t *output, DATA *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_view *view = &params->view;
    struct position first = {input, 0, 0, output};
    bool waiting = false; /* whether the first pixel of a pair is not computed */

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            struct position next = {input, i * window->stride_h - window->pad_top,
                                    -window->pad_left, output + i * view->row};

            for (int32_t j = 0; j < window->output_w; ++j) {
                if (waiting) {
                    store_windows(params, &first, &next, patches, plain);
                } else {
                    first = next;
                }
                waiting = !waiting;
                next.x += window->stride_w;
                next.output += view->column;
            }
        }
        input += window->input_h * window->input_w * view->pixel_c;
        output += view->image;
    }
    if (waiting) {
        store_windows(params, &first, &first, patches, plain);
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
        store_pixels(params, 0, patches, output, output + params->output_c, plain);
        input += 2 * window->input_c;
        output += 2 * params->output_c;
    }
    if (pixels > 0) {
        put_pixel(params, input, patches, false);
        store_pixels(params, 0, patches, output, output, plain);
    }
}

static inline void convolve(const struct ferrule_conv2d_blocks_s8_params *params,
                            const int8_t *input, int8_t *output, DATA *patches, bool plain)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_view *view = &params->view;

    output += view->first;
    /* The window is one pixel, and input and output have the same pixels in the same order. */
    if (window->kernel_h * window->kernel_w == 1 && window->stride_h * window->stride_w == 1 &&
        window->output_h == window->input_h && window->output_w == window->input_w &&
        (window->pad_top | window->pad_left) == 0 && view->groups == 1 &&
        view->column == params->output_c && view->row == window->output_w * view->column) {
        convolve_pixels(params, input, output, patches, plain);
    } else {
        convolve_windows(params, input, output, patches, plain);
    }
}

void FERRULE_KERNEL(const struct ferrule_conv2d_blocks_s8_params *params, const int8_t *input,
                    int8_t *output, void *scratch)
{
    bool more = true;

    for (; more; ++params) {
        if (FERRULE_IS_PLAIN(&params->output)) {
            convolve(params, input, output, scratch, true);
        } else {
            convolve(params, input, output, scratch, false);
        }
        more = params->view.more != 0;
    }
}
