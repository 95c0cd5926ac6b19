/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Results of two int16 inputs, a pair of elements at a time with the DSP extension and four
 * with vectors (MVE); internal to the kernels.
 */
#ifndef FERRULE_KERNELS_DENSE_S16_H_INCLUDED
#define FERRULE_KERNELS_DENSE_S16_H_INCLUDED

#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/sum_s16.h"

/** Constants of a row; the assembler relies on their order. */
struct ferrule_dense_s16 {
    int32_t multiplier; /**< of the result, as shift and rounding; its right shift is 1 or more */
    int32_t shift;      /**< negative to the right */
    int32_t low;
    int32_t high;
    int32_t term_multiplier; /**< of the term that is not exact */
    int32_t term_shift;      /**< negative to the right, or 0 */
    int32_t away;            /**< as in ferrule_sum_scale */
};

#if FERRULE_HAS_DSP
/** @brief Return two results, clamped to int16, as a word within limits in each half. */
static inline uint32_t ferrule_dense_pair(int32_t low_half, int32_t high_half, uint32_t lows,
                                          uint32_t highs)
{
    uint32_t word = ferrule_pair(ferrule_saturate_s16(low_half), ferrule_saturate_s16(high_half));

    __asm__("ssub16 r12, %0, %1\n\t"
            "sel %0, %0, %1\n\t"
            "ssub16 r12, %2, %0\n\t"
            "sel %0, %0, %2\n\t"
            : "+r"(word)
            : "r"(lows), "r"(highs)
            : "cc", "r12");
    return word;
}
#endif

/** @brief Return a value times the result's factor, rounded twice; `twice` is twice the value, and
 * `rounding` half of 2^right. */
static inline int32_t ferrule_dense_scaled(int32_t twice, int32_t multiplier, int32_t rounding,
                                           int32_t right)
{
    int32_t high = ferrule_high_product(twice, multiplier);

    return (high - (int32_t)(high < 0) + rounding) >> right;
}

/* Round and clamp the sums or products in q0, with the multiplier and shift in t0 and t1, and the
 * limits in q2 and q3; q1 is spare. */
#define FERRULE_DENSE_FINISH                                                                       \
    "vqrdmulh.s32 q0, q0, %[t0]\n\t"                                                               \
    "vshr.s32 q1, q0, #31\n\t"                                                                     \
    "vadd.i32 q0, q0, q1\n\t"                                                                      \
    "vrshl.s32 q0, %[t1]\n\t"                                                                      \
    "vmax.s32 q0, q0, q2\n\t"                                                                      \
    "vmin.s32 q0, q0, q3\n\t"                                                                      \
    "vstrh.32 q0, [%[output]], #8\n\t"
#define FERRULE_DENSE_START                                                                        \
    "ldrd %[t0], %[t1], [%[constants], #8]\n\t"                                                    \
    "vdup.32 q2, %[t0]\n\t"                                                                        \
    "vdup.32 q3, %[t1]\n\t"                                                                        \
    "ldrd %[t0], %[t1], [%[constants]]\n\t"

/** @brief Set the constants of a sum; return whether the first term is exact, and the result has a
 * right shift of 1 or more. */
static inline bool ferrule_dense_terms(const struct ferrule_result *result,
                                       const struct ferrule_sum_scale *exact,
                                       const struct ferrule_sum_scale *scaled,
                                       struct ferrule_dense_s16 *constants)
{
    constants->multiplier = result->multiplier;
    constants->shift = result->shift;
    constants->low = result->low;
    constants->high = result->high;
    constants->term_multiplier = scaled->multiplier;
    constants->term_shift = -scaled->right;
    constants->away = scaled->away;
    return exact->multiplier == INT32_C(1) << 30 && exact->right == 0 && result->shift < 0;
}

#endif
