/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of an integer SVDF kernel. A kernel's source file defines these macros, then
 * includes this file:
 *
 * FERRULE_KERNEL name of the kernel
 * FERRULE_STATE  element type of the state and of the weights over time
 * FERRULE_LEAST  least value of that type
 * FERRULE_MOST   largest value of that type
 */
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/svdf.h"

static int32_t sum_features(const int8_t *frame, const int8_t *weights, int32_t sum, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        sum += frame[i] * weights[i];
    }
    return sum;
}

/* Moves a filter's frames by one, appends the newest, and returns their weighted sum. */
static int32_t advance(const struct ferrule_svdf_s8_params *params, int32_t newest,
                       const FERRULE_STATE *weights, const FERRULE_STATE *state,
                       FERRULE_STATE *next)
{
    const int32_t last = params->shape.memory - 1;
    int32_t sum = 0;

    for (int32_t i = 0; i < last; ++i) {
        next[i] = state[i + 1];
        sum = ferrule_add_wrap(sum, (next[i] - params->state_zero_point) * weights[i]);
    }
    newest = ferrule_requantize(newest, params->state_multiplier, params->state_shift);
    newest = ferrule_clamp(newest, FERRULE_LEAST, FERRULE_MOST) + params->state_zero_point;
    next[last] = (FERRULE_STATE)newest; /* modulo its range, as in TensorFlow Lite Micro */
    return ferrule_add_wrap(sum, (next[last] - params->state_zero_point) * weights[last]);
}

void FERRULE_KERNEL(const struct ferrule_svdf_s8_params *params, const int8_t *input,
                    const FERRULE_STATE *state, int8_t *output, FERRULE_STATE *next)
{
    const struct ferrule_svdf_shape *shape = &params->shape;
    const int32_t features = shape->features;

    for (int32_t b = 0; b < shape->batches; ++b) {
        const FERRULE_STATE *time_weights = (const FERRULE_STATE *)params->time_weights;

        for (int32_t u = 0; u < shape->units; ++u) {
            int32_t sum = params->bias[u];

            for (int32_t f = u * shape->rank; f < (u + 1) * shape->rank; ++f) {
                int32_t newest = sum_features(input, &params->feature_weights[f * features],
                                              params->feature_bias[f], features);

                sum = ferrule_add_wrap(sum, advance(params, newest, time_weights, state, next));
                time_weights += shape->memory;
                state += shape->memory;
                next += shape->memory;
            }
            sum = ferrule_requantize(sum, params->output_multiplier, params->output_shift);
            sum = ferrule_add_wrap(sum, params->output_zero_point);
            *output++ = (int8_t)ferrule_clamp(sum, INT8_MIN, INT8_MAX);
        }
        input += features;
    }
}
