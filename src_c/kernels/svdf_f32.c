/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/svdf.h"

static float sum_products(const float *values, const float *weights, int32_t count)
{
    float sum = 0.0f;

    for (int32_t i = 0; i < count; ++i) {
        sum += values[i] * weights[i];
    }
    return sum;
}

void ferrule_svdf_f32(const struct ferrule_svdf_f32_params *params, const float *input,
                      const float *state, float *output, float *next)
{
    const struct ferrule_svdf_shape *shape = &params->shape;
    const int32_t memory = shape->memory;

    for (int32_t b = 0; b < shape->batches; ++b) {
        const float *time_weights = params->time_weights;
        const float *feature_weights = params->feature_weights;

        for (int32_t u = 0; u < shape->units; ++u) {
            float sum = params->bias[u];

            for (int32_t r = 0; r < shape->rank; ++r) {
                for (int32_t i = 1; i < memory; ++i) {
                    next[i - 1] = state[i];
                }
                next[memory - 1] = sum_products(input, feature_weights, shape->features);
                sum += sum_products(next, time_weights, memory);
                feature_weights += shape->features;
                time_weights += memory;
                state += memory;
                next += memory;
            }
            *output++ = ferrule_clamp_f32(sum, params->low, params->high);
        }
        input += shape->features;
    }
}
