/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cast.h"

#define FERRULE_KERNEL    ferrule_cast_32
#define FERRULE_FIRST     uint32_t
#define FERRULE_OUTPUT    uint32_t
#define FERRULE_RESULT(x) (x)
#include "ferrule/kernels/cast.inc.h"
