/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/rectify.h"

#define FERRULE_KERNEL       ferrule_prelu_f32
#define FERRULE_INPUTS       2
#define FERRULE_PARAMS       ferrule_prelu_f32_params
#define FERRULE_FIRST        float
#define FERRULE_SECOND       float
#define FERRULE_OUTPUT       float
#define FERRULE_RESULT(x, y) ((x) >= 0.0f ? (x) : (x) * (y))
#define FERRULE_LANE(x, y)                                                                         \
    "vmul.f32 s" #y ", s" #x ", s" #y "\n\t"                                                       \
    "vcmp.f32 s" #x ", #0\n\t"                                                                     \
    "vmrs apsr_nzcv, fpscr\n\t"                                                                    \
    "it lt\n\t"                                                                                    \
    "vmovlt.f32 s" #x ", s" #y "\n\t"
#define FERRULE_VECTOR(x, y)                                                                       \
    "vmul.f32 q" #y ", q" #x ", q" #y "\n\t"                                                       \
    "vcmp.f32 ge, q" #x ", zr\n\t"                                                                 \
    "vpsel q" #x ", q" #x ", q" #y "\n\t"
#include "ferrule/kernels/elementwise.inc.h"
