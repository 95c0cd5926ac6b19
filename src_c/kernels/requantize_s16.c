/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/requantize_element.h"

#define FERRULE_KERNEL ferrule_requantize_s16
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_requantize_params
#define FERRULE_FIRST  int16_t
#define FERRULE_OUTPUT int16_t
#define FERRULE_RESULT(x)                                                                          \
    (int16_t)ferrule_clamp(ferrule_requantize_element(params, x), INT16_MIN, INT16_MAX)
#include "ferrule/kernels/elementwise.inc.h"
