/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"

static inline float hard_swish(float x)
{
    float gate = x + 3.0f;

    gate = gate < 0.0f ? 0.0f : gate;
    gate = gate > 6.0f ? 6.0f : gate;
    return x * (gate / 6.0f); /* this order avoids overflow for large numbers */
}

#define FERRULE_KERNEL    ferrule_hard_swish_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_nonlinear_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) hard_swish(x)
#include "ferrule/kernels/elementwise.inc.h"
