/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_s64_s16
#define FERRULE_FIRST     int64_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) (int16_t)(x)
#include "ferrule/kernels/cast.inc.h"
