/* SPDX-License-Identifier: Apache-2.0 */
#define FERRULE_KERNEL               ferrule_max_pool2d_s8
#define FERRULE_PARAMS               ferrule_pool2d_params
#define FERRULE_ELEMENT              int8_t
#define FERRULE_VALUE                int32_t
#define FERRULE_FIRST(element)       (element)
#define FERRULE_NEXT(value, element) ((element) > (value) ? (element) : (value))
#define FERRULE_LAST(value, count)   (value)
#include "ferrule/kernels/pool2d.inc.h"
