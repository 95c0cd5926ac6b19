/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of DEPTHWISE_CONV_2D with a window of 3x3 on cores without the DSP extension, for
 * each rule of rounding. A kernel's source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL            name of the kernel
 * FERRULE_STORE_SUMS        stores sums, as ferrule_store_sums does
 * FERRULE_STORE_SUMS_PLAIN  the same for plain outputs
 * FERRULE_IS_PLAIN          whether an output is plain
 */
#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/columns.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STORE_SUMS) ||                                    \
    !defined(FERRULE_STORE_SUMS_PLAIN) || !defined(FERRULE_IS_PLAIN)
#error "define the macros listed at the top of this file"
#endif

/*
 * One channel at a time. Scratch holds three lines of the channel, column by column. A new line
 * replaces the oldest, so the order of the lines in scratch rotates, and the weights rotate with
 * it.
 */
enum { WEIGHTS = FERRULE_LINES * FERRULE_LINES };

/* Write the values of a line of the image, or those outside, to every third element. */
static void put_line(const struct ferrule_depthwise_conv2d_columns_s8_params *params,
                     const int8_t *plane, int32_t line, int32_t *target)
{
    const int32_t *end = target + FERRULE_LINES * params->columns;
    const int32_t outside = params->input_zero_point;
    const int32_t step_bytes = params->input_step_bytes;

    if (line >= 0 && line < params->input_lines) {
        const int8_t *source = plane + line * params->input_line_bytes;
        const int32_t room = params->columns - params->pad_steps;
        int32_t count = params->input_steps < room ? params->input_steps : room;

        for (int32_t i = 0; i < params->pad_steps && target < end; ++i) {
            *target = outside;
            target += FERRULE_LINES;
        }
        for (; count >= 4; count -= 4) {
            const int8_t *third = source + 2 * step_bytes;

            target[0] = source[0];
            target[FERRULE_LINES] = source[step_bytes];
            target[2 * FERRULE_LINES] = third[0];
            target[3 * FERRULE_LINES] = third[step_bytes];
            source += 4 * step_bytes;
            target += 4 * FERRULE_LINES;
        }
        for (; count > 0; --count) {
            *target = *source;
            source += step_bytes;
            target += FERRULE_LINES;
        }
    }
    for (; target < end; target += FERRULE_LINES) {
        *target = outside;
    }
}

static inline void convolve_plane(const struct ferrule_depthwise_conv2d_columns_s8_params *params,
                                  const int8_t *plane, int8_t *output, const int8_t *weights,
                                  const int32_t *scale, int32_t *columns, bool plain)
{
    int32_t *sums = columns + FERRULE_LINES * params->columns;
    const int32_t outputs = (params->output_steps + 1) / 2 * 2;
    int32_t next = -params->pad_lines; /* the input line that is collected next */
    int32_t oldest = 0;                /* the place of the oldest line, which the next replaces */
    int8_t turned[FERRULE_LINES][WEIGHTS];

    /* Place p has line (p - oldest) mod 3 of the window. */
    for (int32_t turn = 0; turn < FERRULE_LINES; ++turn) {
        for (int32_t step = 0; step < WEIGHTS; step += FERRULE_LINES) {
            int32_t line = turn == 0 ? 0 : FERRULE_LINES - turn;

            for (int32_t p = 0; p < FERRULE_LINES; ++p) {
                turned[turn][step + p] = weights[step + line];
                line = line == FERRULE_LINES - 1 ? 0 : line + 1;
            }
        }
    }
    for (int32_t i = 0; i < params->output_lines; ++i) {
        const int32_t top = i * params->line_stride - params->pad_lines;

        if (next < top) {
            next = top;
        }
        for (; next < top + FERRULE_LINES; ++next) {
            put_line(params, plane, next, columns + oldest);
            oldest = oldest == FERRULE_LINES - 1 ? 0 : oldest + 1;
        }
        if (params->step_stride == 1) {
            ferrule_multiply_columns_by1(columns, turned[oldest], outputs, sums);
        } else {
            ferrule_multiply_columns_by2(columns, turned[oldest], outputs, sums);
        }
        if (plain) {
            FERRULE_STORE_SUMS_PLAIN(sums, params->output_steps, scale, output,
                                     params->output_step_bytes);
        } else {
            FERRULE_STORE_SUMS(sums, params->output_steps, scale, output, params->output_step_bytes,
                               params->output.low, params->output.high);
        }
        output += params->output_line_bytes;
    }
}

static inline void convolve(const struct ferrule_depthwise_conv2d_columns_s8_params *params,
                            const int8_t *input, int8_t *output, int32_t *scratch, bool plain)
{
    const int32_t pixels = params->output_lines * params->output_steps;

    for (int32_t b = 0; b < params->batches; ++b) {
        const int8_t *weights = params->weights;
        const int32_t *scale = params->scales;

        for (int32_t i = 0; params->fixed != NULL && i < pixels; ++i) {
            (void)memcpy(output + i * params->channels, params->fixed, (size_t)params->channels);
        }
        for (int32_t c = 0; c < params->live_c; ++c) {
            const int32_t position = scale[FERRULE_PLAIN_SCALE_PLACE];

            convolve_plane(params, input + position, output + position, weights, scale, scratch,
                           plain);
            weights += WEIGHTS;
            scale += FERRULE_PLAIN_SCALE_WORDS;
        }
        input += params->input_lines * params->input_steps * params->channels;
        output += pixels * params->channels;
    }
}

void FERRULE_KERNEL(const struct ferrule_depthwise_conv2d_columns_s8_params *params,
                    const int8_t *input, int8_t *output, void *scratch)
{
    if (FERRULE_IS_PLAIN(&params->output)) {
        convolve(params, input, output, scratch, true);
    } else {
        convolve(params, input, output, scratch, false);
    }
}
