/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/round_even.h"

#define FERRULE_KERNEL ferrule_quantize_f32_even_s8
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_quantize_f32_params
#define FERRULE_FIRST  float
#define FERRULE_OUTPUT int8_t
#define FERRULE_LOCALS                                                                             \
    const float scale = params->scale;                                                             \
    const int32_t zero_point = params->zero_point;                                                 \
    const float low = (float)(INT8_MIN - zero_point);                                              \
    const float high = (float)(INT8_MAX - zero_point);
#define FERRULE_RESULT(x) (int8_t)(ferrule_round_even((x) / scale, low, high) + zero_point)
#include "ferrule/kernels/elementwise.inc.h"
