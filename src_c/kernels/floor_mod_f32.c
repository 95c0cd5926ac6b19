/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/math.h"

static inline float remainder_of(float x, float y)
{
    float rest = ferrule_fmodf(x, y);

    return rest != 0.0f && (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
}

#define FERRULE_KERNEL       ferrule_floor_mod_f32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        float
#define FERRULE_SECOND       float
#define FERRULE_OUTPUT       float
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) remainder_of(x, y)
#include "ferrule/kernels/elementwise.inc.h"
