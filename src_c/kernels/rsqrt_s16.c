/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/elementwise_unary.h"
#include "ferrule/kernels/inverse_sqrt.h"

static inline int16_t inverse_root(const struct ferrule_stored_unary_params *params, int16_t x)
{
    const int32_t root_bits = 20;
    int32_t shift;

    if (x <= 0) {
        return INT16_MAX;
    }

    int32_t root = ferrule_inverse_sqrt(x, &shift);
    int32_t fine = ferrule_requantize(1, root, shift + root_bits);

    return (int16_t)ferrule_clamp(
        ferrule_requantize(fine, params->multiplier, params->shift - root_bits), INT16_MIN,
        INT16_MAX);
}

#define FERRULE_KERNEL    ferrule_rsqrt_s16
#define FERRULE_INPUTS    1
#define FERRULE_PARAMS    ferrule_stored_unary_params
#define FERRULE_FIRST     int16_t
#define FERRULE_OUTPUT    int16_t
#define FERRULE_RESULT(x) inverse_root(params, x)
#include "ferrule/kernels/elementwise.inc.h"
