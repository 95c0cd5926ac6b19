/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"
#include "ferrule/kernels/math.h"

#define FERRULE_KERNEL    ferrule_sqrt_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_elementwise_unary_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) ferrule_sqrtf(x)
#include "ferrule/kernels/elementwise.inc.h"
