/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/compare.h"

#define FERRULE_KERNEL       ferrule_equal_s64
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_broadcast
#define FERRULE_FIRST        int64_t
#define FERRULE_SECOND       int64_t
#define FERRULE_OUTPUT       bool
#define FERRULE_SHAPE        params
#define FERRULE_RESULT(x, y) ((x) == (y))
#include "ferrule/kernels/elementwise.inc.h"
