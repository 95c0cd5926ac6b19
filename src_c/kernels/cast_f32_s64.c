/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast_element.h"

#define FERRULE_KERNEL    ferrule_cast_f32_s64
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    int64_t
#define FERRULE_RESULT(x) ferrule_saturated_s64(x)
#include "ferrule/kernels/cast.inc.h"
