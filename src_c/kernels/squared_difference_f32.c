/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"

#define FERRULE_KERNEL       ferrule_squared_difference_f32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        float
#define FERRULE_SECOND       float
#define FERRULE_OUTPUT       float
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) (((x) - (y)) * ((x) - (y)))
#define FERRULE_LANE(x, y)                                                                         \
    "vsub.f32 s" #x ", s" #x ", s" #y "\n\t"                                                       \
    "vmul.f32 s" #x ", s" #x ", s" #x "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vsub.f32 q" #x ", q" #x ", q" #y "\n\t"                                                       \
    "vmul.f32 q" #x ", q" #x ", q" #x "\n\t"
#include "ferrule/kernels/elementwise.inc.h"
