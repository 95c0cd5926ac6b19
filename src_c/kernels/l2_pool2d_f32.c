/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/math.h"

#define FERRULE_KERNEL               ferrule_l2_pool2d_f32
#define FERRULE_PARAMS               ferrule_pool2d_f32_params
#define FERRULE_ELEMENT              float
#define FERRULE_VALUE                float
#define FERRULE_FIRST(element)       0.0f
#define FERRULE_NEXT(value, element) ((value) + (element) * (element))
#define FERRULE_LAST(value, count)   ferrule_sqrtf((value) / (float)(count))
#include "ferrule/kernels/pool2d.inc.h"
