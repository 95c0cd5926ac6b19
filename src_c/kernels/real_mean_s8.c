/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/round_even.h"
#include "ferrule/kernels/walk.h"

/* Every fourth value goes to the same of four sums, which are added in pairs; the values that are
 * left over come last. */
static float sum(const struct ferrule_real_mean_params *params, const int8_t *input)
{
    const struct ferrule_reduce_loops *over = &params->reduced;
    const int32_t whole = params->count - params->count % 4;
    struct ferrule_walk walk = {.offset = 0};
    float lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float rest = 0.0f;
    int32_t index = 0;

    do {
        const int8_t *element = input + walk.offset;

        for (int32_t i = 0; i < over->extents[3]; ++i) {
            float value =
                (float)(element[i * over->strides[3]] - params->zero_point) * params->scale;

            if (index == whole) {
                rest = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
            }
            if (index < whole) {
                lanes[index % 4] += value;
            } else {
                rest += value;
            }
            ++index;
        }
    } while (ferrule_walk_next(&walk, over, 3));
    return whole == params->count ? (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]) : rest;
}

void ferrule_real_mean_s8(const struct ferrule_real_mean_params *params, const int8_t *input,
                          int8_t *output)
{
    const int32_t zero_point = params->output_zero_point;
    const float low = (float)(INT8_MIN - zero_point);
    const float high = (float)(INT8_MAX - zero_point);
    struct ferrule_walk walk = {.offset = 0};

    do {
        float mean = sum(params, input + walk.offset) / (float)params->count;

        *output++ =
            (int8_t)(ferrule_round_even(mean / params->output_scale, low, high) + zero_point);
    } while (ferrule_walk_next(&walk, &params->kept, 4));
}
