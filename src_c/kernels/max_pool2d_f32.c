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
#define FERRULE_LANE(x, y)                                                                         \
    "vcmp.f32 s" #y ", s" #x "\n\t"                                                                \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it gt\n\t"                                                                                    \
    "vmovgt.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vpt.f32 gt, q" #y ", q" #x "\n\t"                                                             \
    "vorrt q" #x ", q" #y ", q" #y "\n\t"
#define FERRULE_START (-FLT_MAX)
#define FERRULE_LAST_EIGHT
#include "ferrule/kernels/pool2d.inc.h"
