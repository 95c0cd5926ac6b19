/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_pixels.h"
#include "ferrule/kernels/lstm.h"
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/requantize.h"

static float logistic(float x)
{
    /* the exponential of a negative number does not overflow and loses no digits when added to 1 */
    float e = ferrule_expf(x < 0.0f ? x : -x);

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* Multiply a row by the weights of all gates, eight sums at a time. */
static void multiply(const struct ferrule_lstm_f32_params *params, const float *stream,
                     const float *row, int32_t count, float *sums)
{
    const int32_t channels = FERRULE_LSTM_GATES * params->shape.units;
    const int32_t blocks = (channels + FERRULE_LSTM_BLOCK - 1) / FERRULE_LSTM_BLOCK;
    struct ferrule_float_pixels pixels = {
        .image = row,
        .output = sums,
        .pixels = 1,
        .stream = stream,
        .blocks = blocks,
        .last = channels - (blocks - 1) * FERRULE_LSTM_BLOCK,
        .rows = 1,
        .runs = 1,
        .count = count,
    };

    ferrule_float_unlimited(&pixels);
    ferrule_float_blocks_8(&pixels);
}

/* `given` and `kept` are the sums over the input and over the hidden state, in the order of the
 * gates. */
static float advance(const struct ferrule_lstm_f32_params *params, int32_t unit, const float *given,
                     const float *kept, float *cell)
{
    const int32_t units = params->shape.units;
    const int32_t forget = units + unit;
    const int32_t update = 2 * units + unit;
    const int32_t result = 3 * units + unit;
    const float take = logistic(given[unit] + kept[unit]);
    const float keep = logistic(given[forget] + kept[forget]);
    const float new = ferrule_tanhf(given[update] + kept[update]);
    const float show = logistic(given[result] + kept[result]);
    float value = keep * *cell + take * new;

    if (params->cell_clip > 0.0f) {
        value = ferrule_clamp_f32(value, -params->cell_clip, params->cell_clip);
    }
    *cell = value;
    return show * ferrule_tanhf(value);
}

void ferrule_lstm_f32(const struct ferrule_lstm_f32_params *params, const float *input,
                      const float *hidden, const float *cell, float *output, float *next_hidden,
                      float *next_cell, void *scratch)
{
    const struct ferrule_lstm_shape *shape = &params->shape;
    float *given = scratch;
    float *kept = given + FERRULE_LSTM_GATES * shape->units;

    for (int32_t i = 0; i < shape->batches * shape->units; ++i) {
        next_hidden[i] = hidden[i];
        next_cell[i] = cell[i];
    }
    for (int32_t b = 0; b < shape->batches; ++b) {
        for (int32_t t = 0; t < shape->steps; ++t) {
            const int32_t row = b * shape->batch_rows + t * shape->step_rows;
            float *shown = &output[row * shape->units];

            multiply(params, params->weights, &input[row * shape->inputs], shape->inputs, given);
            multiply(params, params->recurrent, next_hidden, shape->units, kept);
            for (int32_t u = 0; u < shape->units; ++u) {
                shown[u] = advance(params, u, given, kept, &next_cell[u]);
                next_hidden[u] = shown[u];
            }
        }
        next_hidden += shape->units;
        next_cell += shape->units;
    }
}
