/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/round_even.h"
#include "ferrule/kernels/walk.h"

static int32_t sum(const struct ferrule_reduce_loops *over, const int8_t *input)
{
    const int32_t extent = over->extents[3];
    const int32_t stride = over->strides[3];
    struct ferrule_walk walk = {.offset = 0};
    int32_t total = 0;

    do {
        const int8_t *element = input + walk.offset;

        for (int32_t i = 0; i < extent; ++i) {
            total += element[i * stride];
        }
    } while (ferrule_walk_next(&walk, over, 3));
    return total;
}

void ferrule_float_mean_s8(const struct ferrule_float_mean_params *params, const int8_t *input,
                           int8_t *output)
{
    const int32_t zero_point = params->output_zero_point;
    const float low = (float)(INT8_MIN - zero_point);
    const float high = (float)(INT8_MAX - zero_point);
    struct ferrule_walk walk = {.offset = 0};

    do {
        int32_t total = sum(&params->reduced, input + walk.offset) + params->offset;

        *output++ =
            (int8_t)(ferrule_round_even((float)total * params->factor, low, high) + zero_point);
    } while (ferrule_walk_next(&walk, &params->kept, 4));
}
