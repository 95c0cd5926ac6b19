/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

static inline uint32_t saturated(float x)
{
    if (x >= 4294967296.0f) {
        return UINT32_MAX;
    }
    return x > 0.0f ? (uint32_t)x : 0u; /* also NaN */
}

#define FERRULE_KERNEL    ferrule_cast_f32_u32
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    uint32_t
#define FERRULE_RESULT(x) saturated(x)
#include "ferrule/kernels/cast.inc.h"
