/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL    ferrule_leaky_relu_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_leaky_relu_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_LOCALS    const float alpha = params->alpha;
#define FERRULE_RESULT(x) ((x) > 0.0f ? (x) : (x) * alpha)
#include "ferrule/kernels/elementwise.inc.h"
