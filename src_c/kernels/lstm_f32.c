/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/lstm.h"
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/requantize.h"

static float logistic(float x)
{
    /* the exponential of a negative number does not overflow and loses no digits when added to 1 */
    float e = ferrule_expf(x < 0.0f ? x : -x);

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static float sum_products(const float *values, const float *weights, int32_t count)
{
    float sum = 0.0f;

    for (int32_t i = 0; i < count; ++i) {
        sum += values[i] * weights[i];
    }
    return sum;
}

static float gate(const struct ferrule_lstm_f32_params *params, int32_t number, int32_t unit,
                  const float *input, const float *hidden)
{
    const struct ferrule_lstm_shape *shape = &params->shape;
    const int32_t row = number * shape->units + unit;
    float sum = sum_products(input, &params->weights[row * shape->inputs], shape->inputs);

    sum += params->bias[row];
    return sum + sum_products(hidden, &params->recurrent[row * shape->units], shape->units);
}

static float advance(const struct ferrule_lstm_f32_params *params, int32_t unit, const float *input,
                     const float *hidden, float *cell)
{
    const float take = logistic(gate(params, 0, unit, input, hidden));
    const float keep = logistic(gate(params, 1, unit, input, hidden));
    const float new = ferrule_tanhf(gate(params, 2, unit, input, hidden));
    const float show = logistic(gate(params, 3, unit, input, hidden));
    float value = keep * *cell + take * new;

    if (params->cell_clip > 0.0f) {
        value = ferrule_clamp_f32(value, -params->cell_clip, params->cell_clip);
    }
    *cell = value;
    return show * ferrule_tanhf(value);
}

void ferrule_lstm_f32(const struct ferrule_lstm_f32_params *params, const float *input,
                      const float *hidden, const float *cell, float *output, float *next_hidden,
                      float *next_cell)
{
    const struct ferrule_lstm_shape *shape = &params->shape;

    for (int32_t i = 0; i < shape->batches * shape->units; ++i) {
        next_hidden[i] = hidden[i];
        next_cell[i] = cell[i];
    }
    for (int32_t b = 0; b < shape->batches; ++b) {
        for (int32_t t = 0; t < shape->steps; ++t) {
            const int32_t row = b * shape->batch_rows + t * shape->step_rows;
            float *shown = &output[row * shape->units];

            for (int32_t u = 0; u < shape->units; ++u) {
                shown[u] =
                    advance(params, u, &input[row * shape->inputs], next_hidden, &next_cell[u]);
            }
            for (int32_t u = 0; u < shape->units; ++u) {
                next_hidden[u] = shown[u];
            }
        }
        next_hidden += shape->units;
        next_cell += shape->units;
    }
}
