/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_s8_f32
#define FERRULE_FIRST     int8_t
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) (float)(x)
#include "ferrule/kernels/cast.inc.h"
