/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_lines.h"

#define FERRULE_WIDENED_BYTES 12
#include "ferrule/kernels/widen_pairs.inc.h"

enum { LINES = FERRULE_DEPTHWISE_LINES, FOUR = FERRULE_WINDOW_GROUP };
enum { EXACT_SHIFT = 7 }; /* from weights times 256 to weights times 2 */
_Static_assert(FERRULE_WIDENED_BYTES == 4 * LINES, "the words of a step are adjacent");

/* One part of the image. */
struct part {
    const struct ferrule_depthwise_lines_params *params;
    struct ferrule_axis_part lines;
    struct ferrule_axis_part steps;
    struct ferrule_window_run run;
};

/* Fill a line of four channels. */
static void fill(uint32_t *target, int32_t words, uint32_t value)
{
    int32_t channel_words = LINES * words;

    for (; words > 1; words -= 2) {
        target[0] = value;
        target[channel_words] = value;
        target[2 * channel_words] = value;
        target[3 * channel_words] = value;
        target += LINES;
        target[0] = value;
        target[channel_words] = value;
        target[2 * channel_words] = value;
        target[3 * channel_words] = value;
        target += LINES;
    }
    for (int32_t c = 0; words > 0 && c < FOUR; ++c) {
        target[c * channel_words] = value;
    }
}

/* The pairs of a line of a part that have pixels inside. */
static struct ferrule_window_run run_of(const struct part *part)
{
    const struct ferrule_axis_part *steps = &part->steps;
    const int32_t odd = steps->pad % 2;
    const int32_t left = steps->inputs - odd;
    const int32_t room = part->params->words - steps->pad / 2 - odd;
    const int32_t pairs = left / 2 < room ? left / 2 : room;
    struct ferrule_window_run run = {.source_bytes = odd * steps->input_bytes,
                                     .target = LINES * (steps->pad / 2 + odd),
                                     .has_left = odd != 0 && left >= 0};

    if (left > 0) {
        run.count = pairs > 0 ? pairs : 0;
        run.has_right = left % 2 != 0 && pairs < room;
    }
    return run;
}

/* The words of a line that no pixel reaches keep the value of pixels outside. */
static inline void widen_line(const struct part *part, const struct ferrule_window_group *group,
                              const int8_t *source, int32_t line, uint32_t *target)
{
    const struct ferrule_depthwise_lines_params *params = part->params;

    if (line < 0 || line >= part->lines.inputs) {
        fill(target, params->words,
             ferrule_pair(params->input_zero_point, params->input_zero_point));
        return;
    }
    source += line * part->lines.input_bytes + part->run.source_bytes;
    target += part->run.target;
    if (part->run.has_left) {
        widen_half(source - group->step_bytes, target - LINES, group, 1);
    }
    if (part->run.has_right) {
        widen_half(source + part->run.count * group->word_bytes, target + LINES * part->run.count,
                   group, 0);
    }
    if (part->run.count > 0) {
        widen_four(source, part->run.count, target, group);
    }
}

static void convolve_four(const struct part *part, const struct ferrule_window_group *group,
                          const int8_t *source, struct ferrule_depthwise_line *line,
                          uint32_t *lines, const struct ferrule_depthwise_way *way)
{
    int32_t next = -part->lines.pad; /* the input line that is widened next */

    line->oldest = 0; /* which the next line replaces */
    for (int32_t i = 0; i < part->lines.outputs; ++i) {
        int32_t top = i * part->lines.stride - part->lines.pad;

        if (next < top) {
            next = top;
        }
        for (; next < top + LINES; ++next) {
            widen_line(part, group, source, next, lines + line->oldest);
            line->oldest = line->oldest == LINES - 1 ? 0 : line->oldest + 1;
        }
        way->store_line(line);
        line->output += part->lines.output_bytes;
    }
}

/* Shift both halves of a word to the right. */
static uint32_t shifted(uint32_t weights, int32_t shift)
{
    return ferrule_pair((int16_t)weights >> shift, (int32_t)weights >> 16 >> shift);
}

static void convolve(const struct part *part, const int8_t *input, int8_t *output, uint32_t *lines,
                     const struct ferrule_depthwise_way *way)
{
    const struct ferrule_depthwise_lines_params *params = part->params;
    const int16_t *inputs = params->inputs != NULL ? params->inputs : params->places;
    const int16_t *places = params->places;
    const int32_t *weights = params->weights;
    const int32_t *scale = params->scales;
    const int32_t end_words = LINES * (part->steps.outputs / way->outputs);
    struct ferrule_window_group group = {.channel_words = LINES * params->words,
                                         .step_bytes = part->steps.input_bytes,
                                         .word_bytes = 2 * part->steps.input_bytes};
    struct ferrule_depthwise_channel channels[FOUR];
    struct ferrule_depthwise_line line = {
        .channels = channels, .steps = part->steps.outputs, .step_bytes = part->steps.output_bytes};

    input += part->lines.input_offset + part->steps.input_offset;
    output += part->lines.output_offset + part->steps.output_offset;
    for (int32_t done = 0; done < params->live_c; done += FOUR) {
        int32_t last = params->live_c - done < FOUR ? params->live_c - done - 1 : FOUR - 1;

        for (int32_t i = 0; i <= last; ++i) {
            struct ferrule_depthwise_channel *channel = &channels[i];

            channel->words = lines + i * group.channel_words;
            channel->end = channel->words + end_words;
            channel->offset_bytes = ferrule_place(places, done + i);
            int32_t shift = EXACT_SHIFT;
            if (way->is_exact) {
                channel->bias = scale[0];
                channel->multiplier = scale[1];
                channel->right = scale[2];
                channel->rounding = scale[3];
                scale += FERRULE_EXACT_WORDS;
            } else {
                channel->bias = scale[1];
                channel->multiplier = (int32_t)((uint32_t)scale[0] & (uint32_t)INT32_MAX);
                shift = scale[0] < 0 ? 1 : 0;
                scale += FERRULE_PROVED_WORDS;
            }
            channel->bias_again = channel->bias;
            way->turn(weights, channel->weights);
            for (int32_t k = 0; shift > 0 && k < way->words; ++k) {
                channel->weights[k] = shifted(channel->weights[k], shift);
            }
            weights += LINES;
        }
        int32_t place = ferrule_place_group(&group, inputs, done, last + 1);
        line.end = channels + last + 1;
        line.output = output;
        convolve_four(part, &group, input + place, &line, lines, way);
    }
}

void ferrule_depthwise_lines(const struct ferrule_depthwise_lines_params *params,
                             const int8_t *input, int8_t *output, uint32_t *scratch,
                             const struct ferrule_depthwise_way *way)
{
    const struct ferrule_axis *lines = &params->lines;
    const struct ferrule_axis *steps = &params->steps;
    const int32_t pixels = lines->output_extent * steps->output_extent;
    struct part part = {.params = params};

    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < lines->parts * steps->parts; ++i) {
            part.lines = ferrule_axis_part(lines, i % lines->parts);
            part.steps = ferrule_axis_part(steps, i / lines->parts);
            part.run = run_of(&part);
            for (int32_t j = 0; j < LINES; ++j) {
                fill(scratch + j, params->words,
                     ferrule_pair(params->input_zero_point, params->input_zero_point));
            }
            if (part.steps.outputs > 0) {
                convolve(&part, input, output, scratch, way);
            }
        }
        if (params->dead.store != NULL) {
            params->dead.store(&params->dead, output, pixels, params->output_c);
        }
        input += lines->input_extent * steps->input_extent * params->input_c;
        output += pixels * params->output_c;
    }
}
