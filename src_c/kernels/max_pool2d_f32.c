/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>

/* As in TensorFlow Lite Micro, the maximum starts at the lowest number, and a NaN never exceeds it.
 */
#define FERRULE_KERNEL               ferrule_max_pool2d_f32
#define FERRULE_PARAMS               ferrule_pool2d_f32_params
#define FERRULE_ELEMENT              float
#define FERRULE_VALUE                float
#define FERRULE_FIRST(element)       ((element) > -FLT_MAX ? (element) : -FLT_MAX)
#define FERRULE_NEXT(value, element) ((element) > (value) ? (element) : (value))
#define FERRULE_LAST(value, count)   (value)
#include "ferrule/kernels/pool2d.inc.h"
