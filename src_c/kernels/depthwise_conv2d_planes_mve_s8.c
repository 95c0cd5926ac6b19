/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/depthwise_conv2d_mve.h"

/* The pixels of an axis that have a common remainder modulo the dilation: an axis without one. */
struct span {
    int32_t outputs;
    int32_t length; /* pixels under the windows */
    int32_t pad;    /* of these, outside the image in front */
    int32_t count;  /* inside the image */
    int32_t first;  /* the first one in the image */
};

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Return the quotient, rounded up; 0 for negative numbers. */
static int32_t parts(int32_t number, int32_t size)
{
    return number > 0 ? (number + size - 1) / size : 0;
}

static struct span span_of(const struct ferrule_mve_axis *axis, int32_t phase)
{
    int32_t outputs = parts(axis->output - phase, axis->dilation);
    int32_t length = (outputs - 1) * axis->stride + axis->taps;
    int32_t pad = least(parts(axis->pad - phase, axis->dilation), length);
    int32_t first = phase + pad * axis->dilation - axis->pad;
    int32_t count = least(parts(axis->input - first, axis->dilation), length - pad);

    return (struct span){outputs, length, pad, count, first};
}

/* The lines of a plane, and those that have been copied. */
struct lines {
    const struct ferrule_depthwise_conv2d_planes_mve_s8_params *params;
    struct span across;
    struct span along;
    int32_t copied;
};

/* Set how many pixels of the next lines are inside the image. */
static void set_line(const struct span *along, bool inside, struct ferrule_mve_plane *plane)
{
    plane->before = inside ? along->pad : along->length;
    plane->count = inside ? along->count : 0;
    plane->after = along->length - plane->before - plane->count;
}

/* Copy lines before `end`, of which some may be outside the image. */
static void copy_lines(struct lines *lines, int32_t end, struct ferrule_mve_plane *plane)
{
    int32_t inside_end = lines->across.pad + lines->across.count;

    plane->lines = 0;
    while (lines->copied < end) {
        bool inside = lines->copied >= lines->across.pad && lines->copied < inside_end;
        int32_t until = lines->copied < lines->across.pad ? lines->across.pad : end;
        const int8_t *source = plane->source;

        until = least(inside ? inside_end : until, end);
        plane->copies = until - lines->copied;
        set_line(&lines->along, inside, plane);
        lines->params->compute(plane);
        lines->copied = until;
        plane->source = inside ? plane->source : source;
    }
}

/* Compute the lines of an output channel. */
static void compute_plane(struct lines *lines, int8_t *scratch, struct ferrule_mve_plane *plane)
{
    const struct ferrule_depthwise_conv2d_planes_mve_s8_params *params = lines->params;
    int32_t stride = params->across.stride;
    int32_t inside_end = lines->across.pad + lines->across.count;
    int32_t count = 1;

    lines->copied = 0;
    plane->target = scratch;
    plane->windows = scratch;
    for (int32_t i = 0; i < lines->across.outputs; i += count) {
        int32_t together = (inside_end - lines->copied) / stride;

        if (i > 0 && lines->copied >= lines->across.pad && together > 0) {
            count = least(together, lines->across.outputs - i);
            plane->copies = stride;
            set_line(&lines->along, true, plane);
            lines->copied += count * stride;
        } else {
            count = 1;
            copy_lines(lines, i * stride + params->across.taps, plane);
            plane->copies = 0;
        }
        plane->lines = count;
        params->compute(plane);
    }
}

/* Compute the pixels with the given remainders modulo the dilations, of an image. */
static void compute_phase(const struct ferrule_depthwise_conv2d_planes_mve_s8_params *params,
                          int32_t across, int32_t along, const int8_t *input, int8_t *output,
                          int8_t *scratch)
{
    struct lines lines = {
        .params = params,
        .across = span_of(&params->across, across),
        .along = span_of(&params->along, along),
    };
    int32_t taps = params->across.taps * params->along.taps;
    struct ferrule_mve_plane plane = {
        .source_line = params->across.input_step * params->across.dilation,
        .source_step = params->along.input_step * params->along.dilation,
        .target_step = params->across.taps,
        .window_step = params->across.taps * params->along.stride,
        .window_line = params->across.stride,
        .output_count = lines.along.outputs,
        .output_step = params->along.output_step * params->along.dilation,
        .output_line = params->across.output_step * params->across.dilation,
        .last_weights = (taps - 1) % FERRULE_MVE_BYTES + 1,
        .input_zero_point = params->input_zero_point,
        .limits = params->output,
    };

    if (lines.across.outputs <= 0 || lines.along.outputs <= 0) {
        return;
    }
    input += lines.across.first * params->across.input_step +
             lines.along.first * params->along.input_step;
    output += across * params->across.output_step + along * params->along.output_step;
    plane.weights = params->weights;
    for (int32_t c = 0; c < params->input_c * params->multiplier; ++c) {
        const int32_t *scale = params->scales + 3 * c;

        plane.source = input + c / params->multiplier;
        plane.output = output + c;
        plane.bias = scale[0];
        plane.multiplier = scale[1];
        plane.shift = scale[2];
        compute_plane(&lines, scratch, &plane);
        plane.weights += taps;
    }
}

void ferrule_depthwise_conv2d_planes_mve_s8(
    const struct ferrule_depthwise_conv2d_planes_mve_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch)
{
    const struct ferrule_mve_axis *across = &params->across;
    const struct ferrule_mve_axis *along = &params->along;

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < across->dilation; ++i) {
            for (int32_t j = 0; j < along->dilation; ++j) {
                compute_phase(params, i, j, input, output, scratch);
            }
        }
        input += across->input * along->input * params->input_c;
        output += across->output * along->output * params->input_c * params->multiplier;
    }
}
