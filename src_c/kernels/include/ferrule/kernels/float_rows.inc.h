/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a convolution in float32. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL           name of the kernel
 * FERRULE_PARAMS           struct tag of the parameters
 * FERRULE_VIEW             the struct ferrule_view of `params`
 * FERRULE_DEPTH            input channels of which a sum is made
 * FERRULE_GROUP            output channels that are made of the same input channels
 * FERRULE_OWN              1 if each channel has its own weights, otherwise 0
 * FERRULE_MULTIPLIER       neighbouring channels with the same input, if FERRULE_OWN
 */
#include <stdbool.h>
#include <stddef.h>

#include "ferrule/kernels/float_pixels.h"
#include "ferrule/kernels/window.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_MULTIPLIER)
#error "define the macros listed at the top of this file"
#endif

enum { ELEMENT = (int32_t)sizeof(float) };

/* Some pixels of a row whose windows are inside the image by the same taps. */
struct span {
    const float *image;
    float *output;
    int32_t y; /* of the window of the first pixel, maybe outside */
    int32_t x;
    int32_t pixels;
};

static void store_span(const struct FERRULE_PARAMS *params, const struct ferrule_view *view,
                       int32_t limits, const struct span *span)
{
    const struct ferrule_window *window = &params->window;
    const struct ferrule_taps rows =
        ferrule_taps_inside(span->y, window->kernel_h, window->dilation_h, window->input_h);
    const struct ferrule_taps columns =
        ferrule_taps_inside(span->x, window->kernel_w, window->dilation_w, window->input_w);
    const int32_t block = params->block;
    const int32_t depth = FERRULE_DEPTH;
    const int32_t taps = columns.end - columns.first;
    const int32_t inside = taps > 0 ? rows.end - rows.first : 0;
    const int32_t row_weights = window->kernel_w * depth * block; /* of a block */
    const int32_t block_weights = window->kernel_h * row_weights;
    const int32_t group = FERRULE_GROUP;
    const int32_t blocks = (group + block - 1) / block;
    const int32_t before =
        inside > 0 ? rows.first * row_weights + columns.first * depth * block : 0;
    const int32_t first = (span->y + rows.first * window->dilation_h) * window->input_w + span->x +
                          columns.first * window->dilation_w;
    const int32_t tap_step = window->dilation_w * view->pixel_c;
    const int32_t row_step = window->dilation_h * window->input_w * view->pixel_c;
    const float *image = span->image + (inside > 0 ? first * view->pixel_c : 0);
    struct ferrule_float_pixels pixels = {
        .image_step = window->stride_w * view->pixel_c * ELEMENT,
        .output_step = view->column * ELEMENT,
        .stream = params->weights + before,
        .blocks = blocks,
        .last = FERRULE_OWN ? block : group - (blocks - 1) * block,
        .rows = inside,
        .runs = taps,
        .count = FERRULE_OWN ? (blocks * block - group) * ELEMENT : depth,
        .run_step = (tap_step - (FERRULE_OWN ? 0 : depth)) * ELEMENT,
        .row_step = (row_step - (taps - 1) * tap_step - (FERRULE_OWN ? tap_step : depth)) * ELEMENT,
        .weights_beside = (window->kernel_w - taps) * depth * block * ELEMENT,
        .weights_behind = (block_weights - before - inside * row_weights) * ELEMENT,
        .weights_before = before * ELEMENT,
        .low = params->low,
        .high = params->high,
        .limits = limits,
        .bias = params->bias,
        .multiplier = FERRULE_MULTIPLIER,
    };

    if (!FERRULE_OWN && pixels.run_step == 0) {
        pixels.count *= taps;
        pixels.runs = 1;
        if (pixels.row_step == 0 && pixels.weights_beside == 0 && inside > 0) {
            pixels.count *= inside;
            pixels.rows = 1;
        }
    }
    for (int32_t g = 0; g < view->groups; ++g) {
        pixels.image = image;
        pixels.output = span->output + g * view->group_output;
        pixels.pixels = span->pixels;
        params->store(&pixels);
        image += depth;
        if (pixels.bias == NULL) {
            pixels.stream += blocks * (block_weights + block);
        } else {
            pixels.stream += group * block_weights;
            pixels.bias += group;
        }
    }
}

/* Store a row of pixels: those whose windows are inside the columns of the image at once. */
static void store_row(const struct FERRULE_PARAMS *params, const struct ferrule_view *view,
                      int32_t limits, struct span span)
{
    const struct ferrule_window *window = &params->window;
    const int32_t width = (window->kernel_w - 1) * window->dilation_w + 1;
    int32_t left = window->output_w;

    while (left > 0) {
        span.pixels = 1;
        if (span.x >= 0 && span.x + width <= window->input_w) {
            span.pixels = (window->input_w - width - span.x) / window->stride_w + 1;
            span.pixels = span.pixels < left ? span.pixels : left;
        }
        store_span(params, view, limits, &span);
        span.x += span.pixels * window->stride_w;
        span.output += span.pixels * view->column;
        left -= span.pixels;
    }
}

static void store_part(const struct FERRULE_PARAMS *params, const struct ferrule_view *view,
                       const float *input, float *output)
{
    const struct ferrule_window *window = &params->window;
    const int32_t limits = ferrule_float_limits(params->low, params->high);

    for (int32_t b = 0; b < window->batches; ++b) {
        struct span span = {.image = input, .output = output, .x = -window->pad_left};

        for (int32_t i = 0; i < window->output_h; ++i) {
            span.y = i * window->stride_h - window->pad_top;
            store_row(params, view, limits, span);
            span.output += view->row;
        }
        input += window->input_h * window->input_w * view->pixel_c;
        output += view->image;
    }
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const float *input, float *output)
{
    bool more = true;

    for (; more; ++params) {
        const struct ferrule_view view = FERRULE_VIEW;

        store_part(params, &view, input, output + view.first);
        more = view.more != 0;
    }
}
