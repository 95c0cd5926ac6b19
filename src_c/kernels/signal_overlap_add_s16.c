/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/signal.h"

static inline int16_t saturated_sum(int16_t one, int16_t other)
{
    const int32_t sum = (int32_t)one + other;

    return (int16_t)(sum > INT16_MAX ? INT16_MAX : sum < INT16_MIN ? INT16_MIN : sum);
}

#define FERRULE_KERNEL    ferrule_signal_overlap_add_s16
#define FERRULE_ELEMENT   int16_t
#define FERRULE_SUM(a, b) saturated_sum(a, b)
#include "ferrule/kernels/overlap_add.inc.h"
