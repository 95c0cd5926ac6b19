/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL       ferrule_prelu_f32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_prelu_f32_params
#define FERRULE_FIRST        float
#define FERRULE_SECOND       float
#define FERRULE_OUTPUT       float
#define FERRULE_RESULT(x, y) ((x) >= 0.0f ? (x) : (x) * (y))
#include "ferrule/kernels/elementwise.inc.h"
