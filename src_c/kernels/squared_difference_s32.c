/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

static inline int32_t square(uint32_t value)
{
    return (int32_t)(value * value);
}

#define FERRULE_KERNEL       ferrule_squared_difference_s32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int32_t
#define FERRULE_SECOND       int32_t
#define FERRULE_OUTPUT       int32_t
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) square((uint32_t)(x) - (uint32_t)(y))
#include "ferrule/kernels/elementwise.inc.h"
