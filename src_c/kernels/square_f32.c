/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

#define FERRULE_KERNEL       ferrule_square_f32
#define FERRULE_INPUTS       1
#define FERRULE_PARAMS       ferrule_elementwise_unary_params
#define FERRULE_FIRST        float
#define FERRULE_OUTPUT       float
#define FERRULE_RESULT(x)    ((x) * (x))
#define FERRULE_LANE(x, y)   "vmul.f32 s" #x ", s" #x ", s" #x "\n\t"
#define FERRULE_VECTOR(x, y) "vmul.f32 q" #x ", q" #x ", q" #x "\n\t"
#include "ferrule/kernels/elementwise.inc.h"
