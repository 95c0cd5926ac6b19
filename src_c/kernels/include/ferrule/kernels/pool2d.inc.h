/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a pooling kernel. A kernel's source file defines these macros, then includes
 * this file:
 *
 * FERRULE_KERNEL               name of the kernel
 * FERRULE_PARAMS               struct tag of the parameters
 * FERRULE_ELEMENT              element type
 * FERRULE_VALUE                type of the computation
 * FERRULE_FIRST(element)       initial value of a window, from its first element
 * FERRULE_NEXT(value, element) the value after one more element
 * FERRULE_LAST(value, count)   the result before clamping
 * FERRULE_LANE(x, y)           optional, for float32: assembler of FERRULE_NEXT for the value in
 *                              register s<x> and the element in s<y>,
 * FERRULE_VECTOR(x, y)         the same with q<x> and q<y>,
 * FERRULE_START                the value with which they begin, and
 * FERRULE_LAST_EIGHT           FERRULE_LAST of s0 to s7
 */
#include "ferrule/kernels/pool2d.h"
#ifdef FERRULE_LANE
#include "ferrule/kernels/float_limits.h"
#include "ferrule/kernels/float_pixels.h"
#define FERRULE_BY_EIGHT FERRULE_HAS_VFP
#else
#define FERRULE_BY_EIGHT 0
#endif

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_ELEMENT)
#error "define the macros listed at the top of this file"
#endif

static FERRULE_VALUE clamp(FERRULE_VALUE value, FERRULE_VALUE low, FERRULE_VALUE high)
{
    if (value < low) {
        return low;
    }
    return value > high ? high : value;
}

/* The pixels of a window inside the image. */
struct pixels {
    int32_t rows;
    int32_t columns;
    int32_t step;        /* elements from one to the next one in the row */
    int32_t to_next_row; /* from behind the last one of a row */
#if FERRULE_BY_EIGHT
    float start[8];
    float total; /* of results of eight channels; not finite if one of them is not */
#endif
};

#if FERRULE_BY_EIGHT
#include "ferrule/kernels/pool2d_eights.inc.h"
#endif

static FERRULE_ELEMENT last(const struct FERRULE_PARAMS *params, FERRULE_VALUE value, int32_t count)
{
    (void)count; /* unused by a maximum */
    return (FERRULE_ELEMENT)clamp(FERRULE_LAST(value, count), params->low, params->high);
}

static void store_channel(const struct FERRULE_PARAMS *params, const struct pixels *pixels,
                          const FERRULE_ELEMENT *pixel, FERRULE_ELEMENT *output)
{
    FERRULE_VALUE value = FERRULE_FIRST(*pixel);

    for (int32_t i = pixels->rows; i > 0; --i) {
        for (int32_t j = pixels->columns; j > 0; --j) {
            value = FERRULE_NEXT(value, *pixel);
            pixel += pixels->step;
        }
        pixel += pixels->to_next_row;
    }
    *output = last(params, value, pixels->rows * pixels->columns);
}

static void store_four(const struct FERRULE_PARAMS *params, const struct pixels *pixels,
                       const FERRULE_ELEMENT *pixel, FERRULE_ELEMENT *output)
{
    const int32_t step = pixels->step;
    const int32_t count = pixels->rows * pixels->columns;
    FERRULE_VALUE a = FERRULE_FIRST(pixel[0]);
    FERRULE_VALUE b = FERRULE_FIRST(pixel[1]);
    FERRULE_VALUE c = FERRULE_FIRST(pixel[2]);
    FERRULE_VALUE d = FERRULE_FIRST(pixel[3]);

    for (int32_t i = pixels->rows; i > 0; --i) {
        for (int32_t j = pixels->columns; j > 0; --j) {
            a = FERRULE_NEXT(a, pixel[0]);
            b = FERRULE_NEXT(b, pixel[1]);
            c = FERRULE_NEXT(c, pixel[2]);
            d = FERRULE_NEXT(d, pixel[3]);
            pixel += step;
        }
        pixel += pixels->to_next_row;
    }
    output[0] = last(params, a, count);
    output[1] = last(params, b, count);
    output[2] = last(params, c, count);
    output[3] = last(params, d, count);
}

static void store_pixel(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *corner,
                        struct pixels *pixels, FERRULE_ELEMENT *output)
{
    const int32_t channels = params->window.input_c;
    int32_t c = 0;

#if FERRULE_BY_EIGHT
    for (; c < channels - 7; c += 8) {
        store_eight(pixels, &corner[c], &output[c]);
    }
#endif

    for (; c < channels - 3; c += 4) {
        store_four(params, pixels, &corner[c], &output[c]);
    }
    for (; c < channels; ++c) {
        store_channel(params, pixels, &corner[c], &output[c]);
    }
}

static void store_row(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *image, int32_t y,
                      struct pixels *pixels, FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_taps rows = ferrule_taps_inside(y, window->kernel_h, 1, window->input_h);
    const FERRULE_ELEMENT *row = image + (y + rows.first) * window->input_w * window->input_c;
    int32_t x = -window->pad_left;

    pixels->rows = rows.end - rows.first;
    for (int32_t j = 0; j < window->output_w; ++j) {
        const struct ferrule_taps columns =
            ferrule_taps_inside(x, window->kernel_w, 1, window->input_w);

        pixels->columns = columns.end - columns.first;
        pixels->to_next_row = (window->input_w - pixels->columns) * window->input_c;
        store_pixel(params, row + (x + columns.first) * window->input_c, pixels, output);
        output += window->input_c;
        x += window->stride_w;
    }
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ELEMENT *input,
                    FERRULE_ELEMENT *output)
{
    const struct ferrule_window *window = &params->window;
    struct pixels pixels = {.step = window->input_c};
#if FERRULE_BY_EIGHT
    FERRULE_ELEMENT *results = output;

    for (int32_t i = 0; i < 8; ++i) {
        pixels.start[i] = FERRULE_START;
    }
#endif

    for (int32_t b = 0; b < window->batches; ++b) {
        for (int32_t i = 0; i < window->output_h; ++i) {
            store_row(params, input, i * window->stride_h - window->pad_top, &pixels, output);
            output += window->output_w * window->input_c;
        }
        input += window->input_h * window->input_w * window->input_c;
    }
#if FERRULE_BY_EIGHT
    ferrule_limit_f32(results, (int32_t)(output - results), params->low, params->high,
                      pixels.total);
#endif
}
