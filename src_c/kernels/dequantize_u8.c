/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/quantize.h"

#define FERRULE_KERNEL    ferrule_dequantize_u8
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_dequantize_params
#define FERRULE_FIRST     uint8_t
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) (params->scale * (float)((x) - params->zero_point))
#include "ferrule/kernels/elementwise.inc.h"
