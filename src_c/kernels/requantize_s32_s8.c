/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize_element.h"

#define FERRULE_KERNEL ferrule_requantize_s32_s8
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_requantize_params
#define FERRULE_FIRST  int32_t
#define FERRULE_OUTPUT int8_t
#define FERRULE_RESULT(x)                                                                          \
    (int8_t)ferrule_clamp(ferrule_requantize_element(params, x), INT8_MIN, INT8_MAX)
#include "ferrule/kernels/elementwise.inc.h"
