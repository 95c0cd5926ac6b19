/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Requantisation of accumulators by constants that were proved for each channel.
 *
 * The stored value is the high word of (256 * sum + bias) * multiplier, shifted to the right and
 * saturated to int8. The constants of a channel are chosen, and proved equal to the reference for
 * every sum, when the model is lowered (ferrule.backends.cpu_acc.lowering.proved_scale); weights
 * are widened to 256 times their value.
 */
#ifndef FERRULE_KERNELS_PROVED_SCALE_H_INCLUDED
#define FERRULE_KERNELS_PROVED_SCALE_H_INCLUDED

#include <stdint.h>

#include "ferrule/kernels/dual.h"

/** The right shift of the high word, as text for assembler and as a number. */
#define FERRULE_PROVED_SHIFT_TEXT "11"
enum { FERRULE_PROVED_SHIFT = 11 };

/** Instructions that replace two accumulators by their stored values. */
#define FERRULE_ASM_PROVED_TWO(first, second, multiplier)                                          \
    "smmul " first ", " first ", " multiplier "\n\t"                                               \
    "smmul " second ", " second ", " multiplier "\n\t"                                             \
    "ssat " first ", #8, " first ", asr #" FERRULE_PROVED_SHIFT_TEXT "\n\t"                        \
    "ssat " second ", #8, " second ", asr #" FERRULE_PROVED_SHIFT_TEXT "\n\t"

/** Instructions that replace an accumulator by its stored value. */
#define FERRULE_ASM_PROVED(sum, multiplier)                                                        \
    "smmul " sum ", " sum ", " multiplier "\n\t"                                                   \
    "ssat " sum ", #8, " sum ", asr #" FERRULE_PROVED_SHIFT_TEXT "\n\t"

/** @brief Return the stored value of an accumulator. */
static inline int8_t ferrule_proved_s8(uint32_t sum, int32_t multiplier)
{
    int32_t high = (int32_t)(((int64_t)(int32_t)sum * multiplier) >> 32);

    return (int8_t)ferrule_saturate_s8(high >> FERRULE_PROVED_SHIFT);
}

/** @brief Return 256 times the bytes 0 and 2 of a word of int8 weights, as two 16-bit numbers. */
static inline uint32_t ferrule_proved_even(uint32_t weights)
{
    return (weights << 8) & 0xff00ff00u;
}

/** @brief Return 256 times the bytes 1 and 3 of a word of int8 weights, as two 16-bit numbers. */
static inline uint32_t ferrule_proved_odd(uint32_t weights)
{
    return weights & 0xff00ff00u;
}

#endif
