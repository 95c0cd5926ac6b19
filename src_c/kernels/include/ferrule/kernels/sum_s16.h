/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The arithmetic of sums of int16, with the results of ferrule/kernels/sum.h; internal to the
 * kernels.
 */
#ifndef FERRULE_KERNELS_SUM_S16_H_INCLUDED
#define FERRULE_KERNELS_SUM_S16_H_INCLUDED

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/sum.h"

/** Constants of a factor below 1. */
struct ferrule_sum_scale {
    int32_t multiplier;
    int32_t right;
    int32_t rounding;
    int32_t away; /**< all ones if halves below zero are to be rounded away from it: the right shift
                     is not 0 */
};

/** @brief Return the constants of a factor whose shift is -31 to 0. */
static inline struct ferrule_sum_scale ferrule_sum_scale_of(int32_t multiplier, int32_t shift)
{
    struct ferrule_sum_scale scale = {multiplier, -shift, (int32_t)((UINT32_C(1) << -shift) >> 1),
                                      shift < 0 ? -1 : 0};
    return scale;
}

/** @brief Return half of `twice` times the factor, rounded twice; its magnitude is below 2^30. */
static inline int32_t ferrule_scale_half(int32_t twice, const struct ferrule_sum_scale *scale)
{
    int32_t high = ferrule_high_product(twice, scale->multiplier);

    return (high + (high < 0 ? scale->away : 0) + scale->rounding) >> scale->right;
}

/** @brief Return the stored value of a sum of terms; `result` has a zero point of 0. */
static inline int16_t ferrule_sum_result_s16(const struct ferrule_result *result,
                                             const struct ferrule_sum_scale *scale, int32_t sum)
{
    if (result->shift > 0) {
        return (int16_t)ferrule_result(result, sum);
    }
    return (int16_t)ferrule_clamp(ferrule_scale_half(2 * sum, scale), result->low, result->high);
}

/* The members of ferrule_sum_params that the kernels use; the zero points of int16 are 0, and the
 * left shift is below 16. */
#define FERRULE_SUM_S16_LOCALS                                                                     \
    const struct ferrule_sum_scale first_scale =                                                   \
        ferrule_sum_scale_of(params->first.multiplier, params->first.shift);                       \
    const struct ferrule_sum_scale second_scale =                                                  \
        ferrule_sum_scale_of(params->second.multiplier, params->second.shift);                     \
    const struct ferrule_result result = params->result;                                           \
    const struct ferrule_sum_scale result_scale =                                                  \
        ferrule_sum_scale_of(result.multiplier, result.shift > 0 ? 0 : result.shift);              \
    const int32_t unit = INT32_C(2) << params->left_shift;
#define FERRULE_SUM_S16(x, sign, y)                                                                \
    ferrule_sum_result_s16(&result, &result_scale,                                                 \
                           ferrule_scale_half((x) * unit, &first_scale)                            \
                               sign ferrule_scale_half((y) * unit, &second_scale))

#endif
