/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

static inline int32_t remainder_of(int32_t x, int32_t y)
{
    if (y == 0 || y == -1) {
        return 0;
    }

    int32_t rest = x % y;

    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#define FERRULE_KERNEL       ferrule_floor_mod_s32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int32_t
#define FERRULE_SECOND       int32_t
#define FERRULE_OUTPUT       int32_t
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) remainder_of(x, y)
#include "ferrule/kernels/elementwise.inc.h"
