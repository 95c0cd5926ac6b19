/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/reduce.h"
#include "ferrule/kernels/walk.h"

/* Kahan summation: the error does not grow with the number of elements. */
static float sum(const struct ferrule_reduce_loops *over, const float *input)
{
    struct ferrule_walk walk = {.offset = 0};
    float total = 0.0f;
    float lost = 0.0f;

    do {
        float term = input[walk.offset] - lost;
        float next = total + term;

        lost = next - next == 0.0f ? (next - total) - term
                                   : 0.0f; /* an infinite sum has no error term */
        total = next;
    } while (ferrule_walk_next(&walk, over, 4));
    return total;
}

void ferrule_reduce_f32(const struct ferrule_reduce_f32_params *params, const float *input,
                        float *output)
{
    struct ferrule_walk walk = {.offset = 0};

    do {
        *output++ = sum(&params->reduced, input + walk.offset) / params->divisor;
    } while (ferrule_walk_next(&walk, &params->kept, 4));
}
