/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an integer LSTM kernel. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL              name of the kernel
 * FERRULE_PARAMS              struct tag of the parameters
 * FERRULE_ACTIVATION          element type of input, hidden state and output
 * FERRULE_LEAST               least value of that type
 * FERRULE_MOST                largest value of that type
 * FERRULE_SUM                 type of the sums
 * FERRULE_SCALE               function that scales a sum
 * FERRULE_OFFSET(params, row) start of a sum over the hidden state
 */
#include "ferrule/kernels/lstm.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/sigmoid.h"

static inline int32_t saturate(int32_t value)
{
    return ferrule_clamp(value, INT16_MIN, INT16_MAX);
}

static int32_t scaled_sum(const FERRULE_ACTIVATION *values, const int8_t *weights, FERRULE_SUM sum,
                          int32_t count, const struct ferrule_lstm_factor *factor)
{
    for (int32_t i = 0; i < count; ++i) {
        sum += (int32_t)values[i] * weights[i];
    }
    return saturate(FERRULE_SCALE(sum, factor->multiplier, factor->shift));
}

/* The argument of a gate's function, in Q3.12. */
static int16_t gate(const struct FERRULE_PARAMS *params, int32_t number, int32_t unit,
                    const FERRULE_ACTIVATION *input, const FERRULE_ACTIVATION *hidden)
{
    const struct ferrule_lstm_shape *shape = &params->shape;
    const int32_t row = number * shape->units + unit;
    const int32_t given =
        scaled_sum(input, &params->weights[row * shape->inputs], params->bias[row], shape->inputs,
                   &params->scaling.input[number]);
    const int32_t kept =
        scaled_sum(hidden, &params->recurrent[row * shape->units], FERRULE_OFFSET(params, row),
                   shape->units, &params->scaling.recurrent[number]);

    return (int16_t)saturate(given + kept);
}

static int32_t product(int32_t a, int32_t b, const struct ferrule_lstm_factor *factor)
{
    return ferrule_requantize(a * b, factor->multiplier, factor->shift);
}

/* Advances the cell of a unit and returns the new hidden value. */
static FERRULE_ACTIVATION advance(const struct FERRULE_PARAMS *params, int32_t unit,
                                  const FERRULE_ACTIVATION *input, const FERRULE_ACTIVATION *hidden,
                                  int16_t *cell)
{
    const struct ferrule_lstm_scaling *scaling = &params->scaling;
    const struct ferrule_sigmoid_s16_params *gates = &scaling->gates;
    const int32_t take = ferrule_logistic_element(gates, gate(params, 0, unit, input, hidden));
    const int32_t keep = ferrule_logistic_element(gates, gate(params, 1, unit, input, hidden));
    const int32_t new = ferrule_tanh_element(gates, gate(params, 2, unit, input, hidden));
    const int32_t show = ferrule_logistic_element(gates, gate(params, 3, unit, input, hidden));
    int32_t value = saturate(saturate(product(keep, *cell, &scaling->forget)) +
                             saturate(product(take, new, &scaling->update)));

    if (scaling->cell_clip >= 0) {
        value = ferrule_clamp(value, -scaling->cell_clip, scaling->cell_clip);
    }
    *cell = (int16_t)value;
    value = product(ferrule_tanh_element(&scaling->cell, *cell), show, &scaling->hidden);
    value = ferrule_add_wrap(value, scaling->hidden_zero_point);
    return (FERRULE_ACTIVATION)ferrule_clamp(value, FERRULE_LEAST, FERRULE_MOST);
}

void FERRULE_KERNEL(const struct FERRULE_PARAMS *params, const FERRULE_ACTIVATION *input,
                    const FERRULE_ACTIVATION *hidden, const int16_t *cell,
                    FERRULE_ACTIVATION *output, FERRULE_ACTIVATION *next_hidden, int16_t *next_cell)
{
    const struct ferrule_lstm_shape *shape = &params->shape;

    for (int32_t i = 0; i < shape->batches * shape->units; ++i) {
        next_hidden[i] = hidden[i];
        next_cell[i] = cell[i];
    }
    for (int32_t b = 0; b < shape->batches; ++b) {
        for (int32_t t = 0; t < shape->steps; ++t) {
            const int32_t row = b * shape->batch_rows + t * shape->step_rows;
            FERRULE_ACTIVATION *shown = &output[row * shape->units];

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
