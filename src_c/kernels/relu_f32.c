/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL    ferrule_relu_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_relu_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_RESULT(x) ((x) < 0.0f ? 0.0f : (x))
#define FERRULE_LANE(x, y)                                                                         \
    "vcmp.f32 s" #x ", s" #y "\n\t"                                                                \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it mi\n\t"                                                                                    \
    "vmovmi.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vpt.f32 gt, q" #y ", q" #x "\n\t"                                                             \
    "vorrt q" #x ", q" #y ", q" #y "\n\t"
#include "ferrule/kernels/elementwise.inc.h"
