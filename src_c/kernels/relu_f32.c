/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_limits.h"
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL       ferrule_relu_f32
#define FERRULE_INPUTS       1
#define FERRULE_PARAMS       ferrule_relu_f32_params
#define FERRULE_FIRST        float
#define FERRULE_OUTPUT       float
#define FERRULE_RESULT(x)    ((x) < 0.0f ? 0.0f : (x))
#define FERRULE_LANE(x, y)   FERRULE_RAISED_LANE(x, y)
#define FERRULE_VECTOR(x, y) FERRULE_RAISED_VECTOR(x, y)
#include "ferrule/kernels/elementwise.inc.h"
