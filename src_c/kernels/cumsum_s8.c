/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/cumsum.h"

enum { ONE = 1 << 19 };

static inline int8_t result(const struct ferrule_cumsum_s8_params *params, int32_t sum)
{
    int32_t value = ferrule_requantize(sum, params->multiplier, params->shift);

    value = ferrule_add_wrap(value, params->output_zero_point);
    return (int8_t)ferrule_clamp(value, INT8_MIN, INT8_MAX);
}

#define FERRULE_KERNEL       ferrule_cumsum_s8
#define FERRULE_PARAMS       ferrule_cumsum_s8_params
#define FERRULE_ELEMENT      int8_t
#define FERRULE_SUM          int32_t
#define FERRULE_FIRST        (-params->zero_point * ONE)
#define FERRULE_NEXT(sum, x) ferrule_add_wrap(sum, ((x) - params->zero_point) * ONE)
#define FERRULE_RESULT(sum)  result(params, sum)
#include "ferrule/kernels/cumsum.inc.h"
