/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/round.h"

#define FERRULE_KERNEL ferrule_quantize_f32_s16
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_quantize_f32_params
#define FERRULE_FIRST  float
#define FERRULE_OUTPUT int16_t
#define FERRULE_LOCALS                                                                             \
    const float scale = params->scale;                                                             \
    const int32_t zero_point = params->zero_point;
#define FERRULE_RESULT(x) (int16_t)ferrule_saturate_s16(ferrule_round((x) / scale) + zero_point)
#include "ferrule/kernels/elementwise.inc.h"
