/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/sum_s16.h"

#define FERRULE_KERNEL       ferrule_sub_s16
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_sum_params
#define FERRULE_FIRST        int16_t
#define FERRULE_SECOND       int16_t
#define FERRULE_OUTPUT       int16_t
#define FERRULE_LOCALS       FERRULE_SUM_S16_LOCALS
#define FERRULE_RESULT(x, y) FERRULE_SUM_S16(x, -, y)
#include "ferrule/kernels/elementwise.inc.h"
