/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

#define FERRULE_KERNEL       ferrule_bitwise_xor_s32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int32_t
#define FERRULE_SECOND       int32_t
#define FERRULE_OUTPUT       int32_t
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) ((x) ^ (y))
#include "ferrule/kernels/elementwise.inc.h"
