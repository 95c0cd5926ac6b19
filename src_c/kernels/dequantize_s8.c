/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"

#define FERRULE_KERNEL ferrule_dequantize_s8
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_dequantize_params
#define FERRULE_FIRST  int8_t
#define FERRULE_OUTPUT float
#define FERRULE_LOCALS                                                                             \
    const float scale = params->scale;                                                             \
    const int32_t zero_point = params->zero_point;
#define FERRULE_RESULT(x) (scale * (float)((x) - zero_point))
#include "ferrule/kernels/elementwise.inc.h"
