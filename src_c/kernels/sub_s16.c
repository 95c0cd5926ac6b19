/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dense_s16.h"

#define FERRULE_ROW                    less_row
#define FERRULE_COMBINE(exact, scaled) (exact) - (scaled)
#define FERRULE_COMBINE_VECTORS        "vsub.i32 q0, q0, q1\n\t"
#include "ferrule/kernels/dense_sum_s16.inc.h"

#define FERRULE_ROW                    more_row
#define FERRULE_COMBINE(exact, scaled) (scaled) - (exact)
#define FERRULE_COMBINE_VECTORS        "vsub.i32 q0, q1, q0\n\t"
#include "ferrule/kernels/dense_sum_s16.inc.h"

static int32_t dense(const struct ferrule_sum_scale *first_scale,
                     const struct ferrule_sum_scale *second_scale,
                     const struct ferrule_result *result, const int16_t *first,
                     const int16_t *second, int16_t *output, int32_t count)
{
    struct ferrule_dense_s16 constants;

    if (ferrule_dense_terms(result, first_scale, second_scale, &constants)) {
        return less_row(&constants, first, second, output, count);
    }
    if (ferrule_dense_terms(result, second_scale, first_scale, &constants)) {
        return more_row(&constants, second, first, output, count);
    }
    return 0;
}

#define FERRULE_KERNEL       ferrule_sub_s16
#define FERRULE_PARAMS       ferrule_sum_params
#define FERRULE_LOCALS       FERRULE_SUM_S16_LOCALS
#define FERRULE_RESULT(x, y) FERRULE_SUM_S16(x, -, y)
#define FERRULE_DENSE(first, second, output, count)                                                \
    dense(&first_scale, &second_scale, &result, first, second, output, count)
#include "ferrule/kernels/dense_s16.inc.h"
