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
#include "ferrule/kernels/elementwise.inc.h"
