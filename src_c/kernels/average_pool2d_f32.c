/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL               ferrule_average_pool2d_f32
#define FERRULE_PARAMS               ferrule_pool2d_f32_params
#define FERRULE_ELEMENT              float
#define FERRULE_VALUE                float
#define FERRULE_FIRST(element)       0.0f
#define FERRULE_NEXT(value, element) ((value) + (element))
#define FERRULE_LAST(value, count)   ((value) / (float)(count))
#define FERRULE_LANE(x, y)           "vadd.f32 s" #x ", s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)         "vadd.f32 q" #x ", q" #x ", q" #y "\n\t"
#define FERRULE_START                0.0f
#define FERRULE_LAST_EIGHT           DIVIDE_EIGHT
#include "ferrule/kernels/pool2d.inc.h"
