/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float round_of(float x)
{
    const float whole_from = 8388608.0f; /* 2^23: a float32 from here on has no fraction */

    if (!(x > -whole_from && x < whole_from) || x == 0.0f) {
        return x; /* also NaN */
    }

    float cut = (float)(int32_t)x;
    float rest = x - cut; /* exact */
    float step = x < 0.0f ? -1.0f : 1.0f;
    float magnitude = rest * step;

    if (magnitude > 0.5f || (magnitude == 0.5f && ((int32_t)x & 1) != 0)) {
        cut += step;
    }
    return cut; /* a number that becomes a zero loses its sign, as in TensorFlow Lite */
}

#define FERRULE_KERNEL    ferrule_round_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) round_of(x)
#include "ferrule/kernels/elementwise.inc.h"
