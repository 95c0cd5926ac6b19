/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"

static inline float magnitude(float x)
{
    union {
        float value;
        uint32_t word;
    } bits = {.value = x};

    bits.word &= UINT32_C(0x7FFFFFFF); /* of zeros and NaN, too */
    return bits.value;
}

#define FERRULE_KERNEL       ferrule_abs_f32
#define FERRULE_INPUTS       1
#define FERRULE_PARAMS       ferrule_elementwise_unary_params
#define FERRULE_FIRST        float
#define FERRULE_OUTPUT       float
#define FERRULE_RESULT(x)    magnitude(x)
#define FERRULE_LANE(x, y)   "vabs.f32 s" #x ", s" #x "\n\t"
#define FERRULE_VECTOR(x, y) "vabs.f32 q" #x ", q" #x "\n\t"
#include "ferrule/kernels/elementwise.inc.h"
