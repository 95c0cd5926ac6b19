/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/nonlinear.h"
#include "ferrule/kernels/sigmoid.h"

#define FERRULE_KERNEL    ferrule_logistic_s16
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_sigmoid_s16_params
#define FERRULE_FIRST     int16_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) ferrule_logistic_element(params, x)
#include "ferrule/kernels/elementwise.inc.h"
