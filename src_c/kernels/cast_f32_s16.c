/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast_element.h"

#define FERRULE_KERNEL    ferrule_cast_f32_s16
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) (int16_t)ferrule_clamp(ferrule_saturated(x), INT16_MIN, INT16_MAX)
#include "ferrule/kernels/cast.inc.h"
