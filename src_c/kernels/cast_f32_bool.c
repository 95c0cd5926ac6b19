/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_f32_bool
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    bool
#define FERRULE_RESULT(x) ((x) != 0.0f)
#include "ferrule/kernels/cast.inc.h"
