/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast_element.h"

#define FERRULE_KERNEL    ferrule_cast_f32_u8
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    uint8_t
#define FERRULE_RESULT(x) (uint8_t)ferrule_clamp(ferrule_saturated(x), 0, UINT8_MAX)
#include "ferrule/kernels/cast.inc.h"
