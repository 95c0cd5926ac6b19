/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_window.h"

enum { SUMS = FERRULE_WINDOW_SUMS, PAIR = 2, PASSES = 2, SHIFT = 8 };
/* Bytes of a record. */
enum { THREE_BYTES = 16, TWO_BYTES = 12 };

/* What is computed and stored at once: a pass over a line of a channel of the group. */
struct job {
    int32_t *stream;
    const int16_t *plan; /* of the records */
    int32_t threes;      /* records of three words */
    int32_t twos;
    int32_t data;   /* of the channel, in words */
    int32_t first;  /* output in a line, in bytes */
    int32_t blocks; /* of sums */
    int32_t count;  /* of outputs */
    const int32_t *scale;
    int32_t target; /* of the channel's first output, in bytes */
};

/* One part of the image. */
struct part {
    const struct ferrule_depthwise_conv2d_window_s8_params *params;
    int32_t *sums;
    int32_t *streams;
    uint32_t *words; /* capacity lines of each channel */
    struct ferrule_window_group group;
    struct ferrule_axis_part lines;
    struct ferrule_axis_part steps;
    struct ferrule_window_run runs[FERRULE_WINDOW_ROWS];
    int32_t band; /* output lines that are computed at a time */
};

static int32_t line_words(const struct ferrule_depthwise_conv2d_window_s8_params *params)
{
    return params->rows * params->row_words;
}

static void fill(uint32_t *target, int32_t words, uint32_t value)
{
    for (; words >= 4; words -= 4) {
        target[0] = value;
        target[1] = value;
        target[2] = value;
        target[3] = value;
        target += 4;
    }
    for (; words > 0; --words) {
        *target++ = value;
    }
}

/* Apart from where it is called, as there are too few registers there. */
__attribute__((noinline)) static void copy(uint32_t *target, const uint32_t *source, int32_t words)
{
    for (; words >= 4; words -= 4) {
        uint32_t a = source[0];
        uint32_t b = source[1];
        uint32_t c = source[2];
        uint32_t d = source[3];

        target[0] = a;
        target[1] = b;
        target[2] = c;
        target[3] = d;
        source += 4;
        target += 4;
    }
    for (; words > 0; --words) {
        *target++ = *source++;
    }
}

/* The value of words whose pixels are outside. */
static uint32_t outside(const struct ferrule_depthwise_conv2d_window_s8_params *params)
{
    return params->group == 1 ? (uint32_t)params->input_zero_point
                              : ferrule_pair(params->input_zero_point, params->input_zero_point);
}

/* The words of a row whose pixels are inside. */
static struct ferrule_window_run run_of(const struct part *part, int32_t row)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int32_t pixels = params->group == 1 ? 1 : PAIR;
    int32_t pixel = params->starts[row] - part->steps.pad;
    int32_t word = 0;
    struct ferrule_window_run run = {0};

    for (; pixel < 0; pixel += params->spread) {
        run.has_left = pixels == PAIR && pixel == -1;
        word += 1;
    }
    run.has_left = run.has_left && part->steps.inputs > 0 && word <= params->row_words;
    run.target = row * params->row_words + word;
    run.source_bytes = pixel * part->steps.input_bytes;
    for (; pixel + pixels <= part->steps.inputs && word < params->row_words; ++word) {
        pixel += params->spread;
        run.count += 1;
    }
    run.has_right = pixels == PAIR && pixel == part->steps.inputs - 1 && word < params->row_words;
    return run;
}

/* Lines of which some are in the image. */
struct inside {
    int32_t above; /* lines before those in the image */
    struct ferrule_window_lines lines;
};

static struct inside inside_of(const struct part *part, int32_t line, int32_t count)
{
    struct inside inside = {.above = line >= 0 ? 0 : (-line < count ? -line : count),
                            .lines = {.source_bytes = part->lines.input_bytes,
                                      .target_words = line_words(part->params)}};
    const int32_t left = part->lines.inputs - line - inside.above;

    inside.lines.count = count - inside.above;
    if (inside.lines.count > left) {
        inside.lines.count = left > 0 ? left : 0;
    }
    return inside;
}

/* Widen lines of the group from the first one in the image on. */
static inline void widen_inside(const struct part *part, const int8_t *source,
                                const struct ferrule_window_lines *lines, uint32_t *target)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;

    for (int32_t row = 0; row < params->rows && lines->count > 0; ++row) {
        params->widen(source, &part->runs[row], &part->group, lines, target);
    }
}

/* Widen lines of the group, some of which may be outside. */
static void widen(const struct part *part, const int8_t *source, int32_t line, int32_t count,
                  uint32_t *target)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const struct inside inside = inside_of(part, line, count);
    const int32_t words = inside.lines.target_words;
    const int32_t end = inside.above + inside.lines.count;

    for (int32_t c = 0; c < params->group; ++c) {
        uint32_t *channel = target + c * part->group.channel_words;

        fill(channel, inside.above * words, outside(params));
        fill(channel + end * words, (count - end) * words, outside(params));
    }
    widen_inside(part, source + (line + inside.above) * inside.lines.source_bytes, &inside.lines,
                 target + inside.above * words);
}

/* Plan the jobs of a part, which has outputs. */
static void plan_jobs(const struct part *part, struct job *jobs)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int32_t pixels = params->group == 1 ? 1 : PAIR;
    const int32_t outputs = part->steps.outputs;

    for (int32_t c = 0; c < params->group; ++c) {
        const int16_t *plan = params->plan;
        int32_t *stream = part->streams + c * params->stream_words;

        for (int32_t pass = 0; pass < params->passes && pass < outputs; ++pass) {
            const int32_t threes = plan[0];
            const int32_t twos = plan[1];
            const int32_t count = (outputs + params->passes - 1 - pass) >> (params->passes - 1);

            *jobs++ = (struct job){.stream = stream,
                                   .plan = plan + 2,
                                   .threes = threes,
                                   .twos = twos,
                                   .data = c * part->group.channel_words,
                                   .first = pass * part->steps.output_bytes,
                                   .blocks = (count + SUMS - 1) / SUMS,
                                   .count = count};
            stream[0] = threes * THREE_BYTES;
            stream[1] = twos * TWO_BYTES;
            stream += FERRULE_WINDOW_HEADER + (stream[0] + stream[1]) / 4;
            plan += 2 + threes * (1 + 3 * pixels) + twos * (1 + 2 * pixels);
        }
    }
}

/* Expand the weights of a channel to the streams of its jobs, whose headers have the bytes of both
 * kinds of records, and four times the value with which a sum begins. */
static void prepare(const struct part *part, int32_t channel, struct job *jobs,
                    const struct job *end)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int8_t *weights = params->weights + channel * (params->taps + 1);
    const int32_t *scale = params->scales + channel * params->scale_words;
    const bool proved = params->scale_words == FERRULE_PROVED_WORDS;
    const int32_t shift = !proved ? 0 : (scale[0] < 0 ? SHIFT - 1 : SHIFT); /* see store_sums.h */
    const int32_t start = proved ? scale[1] : 0;
    const int32_t place = ferrule_place(params->places, channel);
    ferrule_window_expand *const expand = params->expand;

    for (struct job *job = jobs; job != end; ++job) {
        int32_t *records = job->stream + FERRULE_WINDOW_HEADER;

        for (int32_t i = 1; i <= SUMS; ++i) {
            records[-i] = start;
        }
        expand(job->plan, job->threes, job->twos, weights, shift, records);
        job->scale = scale;
        job->target = place + job->first;
    }
}

/* Compute and store lines of the group's channels; apart for its registers, too. */
__attribute__((noinline)) static void compute(const struct part *part, const struct job *jobs,
                                              const struct job *end, int32_t count, int8_t *output)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int32_t hop_words = part->lines.stride * line_words(params);
    const int32_t step_bytes = params->passes * part->steps.output_bytes;

    for (const struct job *job = jobs; job != end; ++job) {
        const uint32_t *data = part->words + job->data;
        int8_t *target = output + job->target;

        for (int32_t i = count; i > 0; --i) {
            params->multiply(data, job->stream, job->blocks, part->sums);
            params->store(part->sums, job->count, job->scale, target, step_bytes, &params->output);
            data += hop_words;
            target += part->lines.output_bytes;
        }
    }
}

/* Compute and store the channels of the group, as many lines at a time as scratch has. */
static void convolve_bands(const struct part *part, const int8_t *source, const struct job *jobs,
                           const struct job *end, int8_t *output)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int32_t words = line_words(params);
    const int32_t stride = part->lines.stride;
    int32_t top = -part->lines.pad; /* the input line that is first in scratch */
    int32_t held = 0;               /* the lines in scratch */
    int32_t count = 0;              /* the lines that are computed at a time */

    for (int32_t left = part->lines.outputs; left > 0; left -= count) {
        const int32_t kept = held - count * stride;

        top += count * stride;
        for (int32_t c = 0; kept > 0 && c < params->group; ++c) {
            uint32_t *lines = part->words + c * part->group.channel_words;

            copy(lines, lines + count * stride * words, kept * words);
        }
        held = kept > 0 ? kept : 0;
        count = left < part->band ? left : part->band;

        const int32_t needed = (count - 1) * stride + params->window_lines;

        widen(part, source, top + held, needed - held, part->words + held * words);
        held = needed;
        compute(part, jobs, end, count, output);
        output += count * part->lines.output_bytes;
    }
}

static void convolve(struct part *part, const int8_t *input, int8_t *output)
{
    const struct ferrule_depthwise_conv2d_window_s8_params *params = part->params;
    const int16_t *inputs = params->inputs != NULL ? params->inputs : params->places;
    struct job jobs[FERRULE_WINDOW_GROUP * PASSES];

    input += part->lines.input_offset + part->steps.input_offset;
    output += part->lines.output_offset + part->steps.output_offset;
    for (int32_t row = 0; row < params->rows; ++row) {
        part->runs[row] = run_of(part, row);
    }
    part->group.step_bytes = part->steps.input_bytes;
    part->group.word_bytes = params->spread * part->steps.input_bytes;
    fill(part->words, params->group * part->group.channel_words, outside(params));
    if (part->steps.outputs == 0) {
        return;
    }

    part->band = 1;
    for (int32_t lines = params->window_lines + part->lines.stride; lines <= params->capacity;
         lines += part->lines.stride) {
        part->band += 1;
    }

    /* Where scratch has all lines at a time, those outside stay there. */
    const bool is_whole = part->band >= part->lines.outputs;
    const int32_t needed = (part->lines.outputs - 1) * part->lines.stride + params->window_lines;
    const struct inside inside = inside_of(part, -part->lines.pad, needed);
    const int32_t inside_bytes = (inside.above - part->lines.pad) * inside.lines.source_bytes;
    uint32_t *inside_words = part->words + inside.above * inside.lines.target_words;

    const int32_t passes =
        part->steps.outputs < params->passes ? part->steps.outputs : params->passes;

    plan_jobs(part, jobs);

    for (int32_t done = 0; done < params->live_c; done += params->group) {
        int32_t left = params->live_c - done;
        int32_t channels = left < params->group ? left : params->group;
        struct job *end = jobs;

        for (int32_t c = 0; c < channels; ++c) {
            prepare(part, done + c, end, end + passes);
            end += passes;
        }
        int32_t place = ferrule_place_group(&part->group, inputs, done, channels);
        if (is_whole) {
            widen_inside(part, input + place + inside_bytes, &inside.lines, inside_words);
            compute(part, jobs, end, part->lines.outputs, output);
        } else {
            convolve_bands(part, input + place, jobs, end, output);
        }
    }
}

void ferrule_depthwise_conv2d_window_s8(
    const struct ferrule_depthwise_conv2d_window_s8_params *params, const int8_t *input,
    int8_t *output, void *scratch)
{
    const struct ferrule_axis *lines = &params->lines;
    const struct ferrule_axis *steps = &params->steps;
    const int32_t pixels = lines->output_extent * steps->output_extent;
    const int32_t channel_words = params->capacity * line_words(params);
    struct part part = {.params = params, .group = {.channel_words = channel_words}};

    part.words = scratch;
    part.streams = (int32_t *)(part.words + params->group * channel_words);
    part.sums = part.streams + params->group * params->stream_words;
    for (int32_t b = 0; b < params->batches; ++b) {
        for (int32_t i = 0; i < lines->parts; ++i) {
            part.lines = ferrule_axis_part(lines, i);
            for (int32_t j = 0; j < steps->parts; ++j) {
                part.steps = ferrule_axis_part(steps, j);
                convolve(&part, input, output);
            }
        }
        if (params->dead.store != NULL) {
            params->dead.store(&params->dead, output, pixels, params->output_c);
        }
        input += lines->input_extent * steps->input_extent * params->input_c;
        output += pixels * params->output_c;
    }
}
