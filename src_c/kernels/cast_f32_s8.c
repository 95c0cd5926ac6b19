/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast_element.h"

#define FERRULE_KERNEL    ferrule_cast_f32_s8
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    int8_t
#define FERRULE_RESULT(x) (int8_t)ferrule_clamp(ferrule_saturated(x), INT8_MIN, INT8_MAX)
#include "ferrule/kernels/cast.inc.h"
