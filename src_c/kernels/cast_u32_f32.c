/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_u32_f32
#define FERRULE_FIRST     uint32_t
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) (float)(x)
#include "ferrule/kernels/cast.inc.h"
