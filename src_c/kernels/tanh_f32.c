/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"
#include "ferrule/kernels/nonlinear.h"

#define FERRULE_KERNEL    ferrule_tanh_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_nonlinear_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) ferrule_tanhf(x)
#include "ferrule/kernels/elementwise.inc.h"
