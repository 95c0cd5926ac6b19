/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_u32_s64
#define FERRULE_FIRST     uint32_t
#define FERRULE_OUTPUT    int64_t
#define FERRULE_RESULT(x) (int64_t)(x)
#include "ferrule/kernels/cast.inc.h"
