/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_s64_bool
#define FERRULE_FIRST     int64_t
#define FERRULE_OUTPUT    bool
#define FERRULE_RESULT(x) ((x) != 0)
#include "ferrule/kernels/cast.inc.h"
