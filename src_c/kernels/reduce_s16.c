/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/walk.h"

static int32_t sum(const struct ferrule_reduce_loops *over, const int16_t *input)
{
    const int32_t extent = over->extents[3];
    const int32_t stride = over->strides[3];
    struct ferrule_walk walk = {.offset = 0};
    int32_t total = 0;

    do {
        const int16_t *element = input + walk.offset;

        for (int32_t i = 0; i < extent; ++i) {
            total = ferrule_add_wrap(total, element[i * stride]);
        }
    } while (ferrule_walk_next(&walk, over, 3));
    return total;
}

void ferrule_reduce_s16(const struct ferrule_reduce_int_params *params, const int16_t *input,
                        int16_t *output)
{
    struct ferrule_walk walk = {.offset = 0};

    do {
        int32_t total = sum(&params->reduced, input + walk.offset);
        int32_t centred = ferrule_add_wrap(total, params->offset);
        int32_t value = ferrule_requantize(centred, params->multiplier, params->shift);

        value = ferrule_add_wrap(value, params->output_zero_point);
        *output++ = (int16_t)ferrule_clamp(value, INT16_MIN, INT16_MAX);
    } while (ferrule_walk_next(&walk, &params->kept, 4));
}
