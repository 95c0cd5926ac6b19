/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

static inline int32_t shifted(int32_t x, int32_t bits)
{
    return x >> (bits < 0 ? 0 : bits > 31 ? 31 : bits);
}

#define FERRULE_KERNEL       ferrule_right_shift_s32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int32_t
#define FERRULE_SECOND       int32_t
#define FERRULE_OUTPUT       int32_t
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) shifted(x, y)
#include "ferrule/kernels/elementwise.inc.h"
