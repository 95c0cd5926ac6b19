/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"
#include "ferrule/kernels/requantize.h"
#include "ferrule/kernels/round.h"

#define FERRULE_KERNEL ferrule_quantize_f32_s16
#define FERRULE_INPUTS 1
#define FERRULE_PARAMS ferrule_quantize_f32_params
#define FERRULE_FIRST  float
#define FERRULE_OUTPUT int16_t
#define FERRULE_RESULT(x)                                                                          \
    (int16_t)ferrule_clamp(ferrule_round((x) / params->scale) + params->zero_point, INT16_MIN,     \
                           INT16_MAX)
#include "ferrule/kernels/elementwise.inc.h"
