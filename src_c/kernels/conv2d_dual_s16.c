/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual_s16.h"

static inline void store(const struct ferrule_conv2d_dual_s16_params *params,
                         const struct ferrule_dual_pair *pair)
{
    if (params->sums == FERRULE_DUAL_TWICE) {
        ferrule_dual_pair_twice_s16(pair);
    } else {
        ferrule_dual_pair_s16(pair);
    }
}

#define FERRULE_KERNEL              ferrule_conv2d_dual_s16
#define FERRULE_WHOLE               ferrule_conv2d_dual_whole_s16
#define FERRULE_GROUPS              ferrule_conv2d_dual_groups_s16
#define FERRULE_STORE(params, pair) store(params, pair)
#define FERRULE_LONG                ferrule_dual_long_s16
#include "ferrule/kernels/conv2d_dual_s16.inc.h"
