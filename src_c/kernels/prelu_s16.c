/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/slope.h"

#define FERRULE_KERNEL ferrule_prelu_s16
#define FERRULE_INPUTS 2
#define FERRULE_PARAMS ferrule_prelu_params
#define FERRULE_FIRST  int16_t
#define FERRULE_SECOND int8_t
#define FERRULE_OUTPUT int16_t
#define FERRULE_LOCALS const struct ferrule_prelu_params local = *params;
#define FERRULE_RESULT(x, y)                                                                       \
    (int16_t)ferrule_clamp(ferrule_prelu(&local, x, &(y)), INT16_MIN, INT16_MAX)
#include "ferrule/kernels/elementwise.inc.h"
