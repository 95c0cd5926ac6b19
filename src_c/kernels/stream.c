/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/stream.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/status.h"

/* The first row that a band of a stage needs of an input; beyond the bands, all rows are done. */
static uint32_t first_needed(const struct ferrule_stream_stage *stage,
                             const struct ferrule_stream_input *input, uint32_t band,
                             uint32_t height)
{
    const uint32_t top = band * input->step;

    if (band >= stage->bands) {
        return height;
    }
    return top > input->pad ? top - input->pad : 0u;
}

static bool is_ready(const struct ferrule_stream *stream, uint32_t index)
{
    const struct ferrule_stream_stage *stage = &stream->chain->stages[index];
    const uint32_t band = stream->bands[index];

    if (band == stage->bands) {
        return false;
    }
    for (uint32_t i = 0; i < stage->input_count; ++i) {
        const struct ferrule_stream_input *input = &stage->inputs[i];
        const int32_t height = stream->chain->tensors[input->tensor].height;
        /* 0 or negative if the band lies in the padding above */
        const int32_t end = (int32_t)(band * input->step) + input->rows - input->pad;

        if (stream->rows[input->tensor].end < (end < height ? end : height)) {
            return false;
        }
    }
    return true;
}

/* The first row of a tensor that a stage up to `last` still needs. */
static uint32_t first_kept(const struct ferrule_stream *stream, uint32_t tensor, uint32_t last)
{
    uint32_t kept = stream->rows[tensor].end;

    for (uint32_t s = 0; s <= last; ++s) {
        const struct ferrule_stream_stage *stage = &stream->chain->stages[s];

        for (uint32_t i = 0; i < stage->input_count; ++i) {
            if (stage->inputs[i].tensor == tensor) {
                const uint32_t needed =
                    first_needed(stage, &stage->inputs[i], stream->bands[s], kept);

                kept = needed < kept ? needed : kept;
            }
        }
    }
    return kept;
}

static int8_t *row_address(const struct ferrule_stream *stream, uint32_t tensor, uint32_t row)
{
    const struct ferrule_stream_tensor *about = &stream->chain->tensors[tensor];

    return stream->places[about->place] + about->offset +
           (row - stream->rows[tensor].first) * about->row_bytes;
}

/* Return the place of the next `count` rows of a tensor, after making room for them. */
static int8_t *append(const struct ferrule_stream *stream, uint32_t tensor, uint32_t count,
                      uint32_t last_reader)
{
    const struct ferrule_stream_tensor *about = &stream->chain->tensors[tensor];
    struct ferrule_stream_rows *rows = &stream->rows[tensor];
    int8_t *place;

    if ((uint32_t)rows->end - rows->first + count > about->capacity) {
        const uint32_t kept = first_kept(stream, tensor, last_reader);
        int8_t *front = row_address(stream, tensor, rows->first);

        (void)memmove(front, row_address(stream, tensor, kept),
                      (rows->end - kept) * about->row_bytes);
        rows->first = (uint16_t)kept;
    }
    place = row_address(stream, tensor, rows->end);
    rows->end = (uint16_t)(rows->end + count);
    return place;
}

static uint32_t part_of(const struct ferrule_stream_stage *stage, uint32_t band)
{
    if (band < stage->top) {
        return band;
    }
    return band < (uint32_t)stage->top + stage->middle ? stage->top : band - stage->middle + 1u;
}

static void take(const struct ferrule_stream *stream, uint32_t index,
                 struct ferrule_stream_step *step)
{
    const struct ferrule_stream_stage *stage = &stream->chain->stages[index];
    const uint32_t band = stream->bands[index];
    const uint32_t left =
        (uint32_t)stream->chain->tensors[stage->output].height - stream->rows[stage->output].end;
    const uint32_t rows = stage->rows < left ? stage->rows : left;

    step->stage = index;
    step->part = part_of(stage, band);
    step->output =
        append(stream, stage->output, band < stage->late ? 0u : rows, stage->last_reader);
    for (uint32_t i = 0; i < stage->input_count; ++i) {
        const struct ferrule_stream_input *input = &stage->inputs[i];

        step->inputs[i] = row_address(stream, input->tensor, first_needed(stage, input, band, 0u));
    }
    stream->bands[index] = (uint16_t)(band + 1u);
    stream->state->from = stage->last_reader;
}

void ferrule_stream_attach(struct ferrule_stream *stream, const struct ferrule_stream_chain *chain,
                           const int8_t *input, int8_t *lines, int8_t *output, void *state)
{
    stream->chain = chain;
    stream->places[FERRULE_STREAM_INPUT] = (int8_t *)(uintptr_t)input; /* only read */
    stream->places[FERRULE_STREAM_LINES] = lines;
    stream->places[FERRULE_STREAM_OUTPUT] = output;
    stream->state = state;
    stream->scratch = (uint8_t *)state + chain->state_bytes;
    stream->rows = (struct ferrule_stream_rows *)(void *)(stream->state + 1);
    stream->bands = (uint16_t *)(void *)(stream->rows + chain->tensor_count);
}

void ferrule_stream_begin(const struct ferrule_stream *stream, uint32_t input_rows)
{
    stream->state->owner = stream->chain;
    for (uint32_t t = 0; t < stream->chain->tensor_count; ++t) {
        stream->rows[t] = (struct ferrule_stream_rows){0, 0};
    }
    for (uint32_t s = 0; s < stream->chain->stage_count; ++s) {
        stream->bands[s] = 0;
    }
    stream->rows[0].end = (uint16_t)input_rows;
    stream->state->from = stream->chain->last_reader;
}

bool ferrule_stream_next(const struct ferrule_stream *stream, struct ferrule_stream_step *step)
{
    for (uint32_t s = stream->state->from + 1u; s > 0u; --s) {
        if (is_ready(stream, s - 1u)) {
            take(stream, s - 1u, step);
            return true;
        }
    }
    return false;
}

int32_t ferrule_stream_expect(const struct ferrule_stream *stream, uint32_t first, uint32_t count)
{
    const uint32_t height = stream->chain->tensors[0].height;

    if (first > height || count > height - first) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (first == 0u) {
        ferrule_stream_begin(stream, 0);
    }
    if (stream->state->owner != stream->chain || stream->rows[0].end != first) {
        return FERRULE_ERR_STATE;
    }
    return FERRULE_OK;
}

bool ferrule_stream_feed(const struct ferrule_stream *stream, const int8_t **rows, uint32_t *count)
{
    const struct ferrule_stream_chain *chain = stream->chain;

    if (*count == 0u) {
        return false;
    }
    (void)memcpy(append(stream, 0, 1, chain->last_reader), *rows, chain->tensors[0].row_bytes);
    *rows += chain->tensors[0].row_bytes;
    --*count;
    stream->state->from = chain->last_reader;
    return true;
}

int32_t ferrule_stream_end(const struct ferrule_stream *stream)
{
    const bool own = stream->state->owner == stream->chain;

    stream->state->owner = NULL;
    return own && stream->rows[0].end == stream->chain->tensors[0].height ? FERRULE_OK
                                                                          : FERRULE_ERR_STATE;
}
