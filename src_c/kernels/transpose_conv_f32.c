/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/transpose_conv.h"

static inline float result(const struct ferrule_transpose_conv_f32_params *params, float sum,
                           int32_t c)
{
    return ferrule_clamp_f32(sum + params->bias[c], params->low, params->high);
}

#define FERRULE_KERNEL         ferrule_transpose_conv_f32
#define FERRULE_PARAMS         ferrule_transpose_conv_f32_params
#define FERRULE_ELEMENT        float
#define FERRULE_WEIGHT         float
#define FERRULE_SUM            float
#define FERRULE_PRODUCT(x, w)  ((x) * (w))
#define FERRULE_RESULT(sum, c) result(params, sum, c)
#include "ferrule/kernels/transpose_conv.inc.h"
