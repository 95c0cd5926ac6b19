/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast_element.h"

#define FERRULE_KERNEL    ferrule_cast_f32_s32
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    int32_t
#define FERRULE_RESULT(x) ferrule_saturated(x)
#include "ferrule/kernels/cast.inc.h"
