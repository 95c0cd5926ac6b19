/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL    ferrule_leaky_relu_f32
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_leaky_relu_f32_params
#define FERRULE_FIRST     float
#define FERRULE_OUTPUT    float
#define FERRULE_LOCALS    const float alpha = params->alpha;
#define FERRULE_RESULT(x) ((x) > 0.0f ? (x) : (x) * alpha)
#define FERRULE_LANE(x, y)                                                                         \
    "vmul.f32 s" #y ", s" #x ", s" #y "\n\t"                                                       \
    "vcmp.f32 s" #x ", #0\n\t"                                                                     \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it le\n\t"                                                                                    \
    "vmovle.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vmul.f32 q" #y ", q" #x ", q" #y "\n\t"                                                       \
    "vcmp.f32 gt, q" #x ", zr\n\t"                                                                 \
    "vpsel q" #x ", q" #x ", q" #y "\n\t"
#define FERRULE_CONSTANT alpha
#include "ferrule/kernels/elementwise.inc.h"
