/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/slope.h"

#define FERRULE_KERNEL ferrule_prelu_s8
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_prelu_params
#define FERRULE_FIRST  int8_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS const struct ferrule_prelu_params local = *params;
#define FERRULE_RESULT(x, y)                                                                       \
    (int8_t)ferrule_clamp(ferrule_prelu(&local, x, &(y)), INT8_MIN, INT8_MAX)
#include "ferrule/kernels/elementwise.inc.h"
