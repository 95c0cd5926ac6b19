/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/compare.h"

#define FERRULE_KERNEL       ferrule_logical_and_bool
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        bool
#define FERRULE_SECOND       bool
#define FERRULE_OUTPUT       bool
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) ((x) && (y))
#include "ferrule/kernels/elementwise.inc.h"
