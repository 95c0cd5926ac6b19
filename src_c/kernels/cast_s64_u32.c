/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_s64_u32
#define FERRULE_FIRST     int64_t
#define FERRULE_OUTPUT    uint32_t
#define FERRULE_RESULT(x) (uint32_t)(x)
#include "ferrule/kernels/cast.inc.h"
