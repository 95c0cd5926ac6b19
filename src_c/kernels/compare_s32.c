/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/compare.h"

#define FERRULE_NAME(operator)  ferrule_##operator##_s32
#define FERRULE_PARAMS          ferrule_broadcast
#define FERRULE_SHAPE           params
#define FERRULE_TYPE            int32_t
#define FERRULE_IS_ORDERED      1
#define FERRULE_FIRST_VALUE(x)  (x)
#define FERRULE_SECOND_VALUE(y) (y)
#include "ferrule/kernels/compare.inc.h"
