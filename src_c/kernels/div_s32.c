/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

static inline int32_t quotient(int32_t x, int32_t y)
{
    if (y == 0) {
        return 0;
    }
    return y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y;
}

#define FERRULE_KERNEL       ferrule_div_s32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int32_t
#define FERRULE_SECOND       int32_t
#define FERRULE_OUTPUT       int32_t
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) quotient(x, y)
#include "ferrule/kernels/elementwise.inc.h"
