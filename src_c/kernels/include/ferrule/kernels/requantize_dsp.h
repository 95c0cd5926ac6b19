/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Requantisation of sums to int8 in assembler for the DSP extension, as pieces of inline
 * assembler, and the same in C.
 *
 * There are two forms. The proved form is one multiplication, whose constants the lowering has
 * proved to give the reference's result for every sum that the channel can have. The exact form
 * rounds twice, as the reference does, and takes any constants that ferrule_scale_sum takes; the
 * output is clamped to int8 only.
 *
 * The pieces treat sums of the same channel in two registers, for two pixels. `shift` is what turns
 * a register into the sum in the form's unit: ", lsl #8" or the like, or nothing.
 */
#ifndef FERRULE_KERNELS_REQUANTIZE_DSP_H_INCLUDED
#define FERRULE_KERNELS_REQUANTIZE_DSP_H_INCLUDED

#include "ferrule/kernels/paired.h"

/** The right shift after the multiplication in the proved form. */
#define FERRULE_PROVED_SHIFT 9
/** Words per channel in the proved form: multiplier, 256 * bias plus rounding. */
#define FERRULE_PROVED_WORDS 2
/** Words per channel in the exact form: 2 * bias, multiplier, right shift, rounding. */
#define FERRULE_EXACT_WORDS 4

#define FERRULE_TEXT_OF(number) #number
#define FERRULE_TEXT(number)    FERRULE_TEXT_OF(number)

/** Two sums times 256 to int8. */
#define FERRULE_PROVED(a, b, multiplier, bias, shift)                                              \
    "add " a ", " bias ", " a shift "\n\t"                                                         \
    "add " b ", " bias ", " b shift "\n\t" FERRULE_PROVED_COMPLETE(a, b, multiplier)
/** The same if the sums include the bias. */
#define FERRULE_PROVED_COMPLETE(a, b, multiplier)                                                  \
    "smmul " a ", " a ", " multiplier "\n\t"                                                       \
    "smmul " b ", " b ", " multiplier "\n\t" FERRULE_PROVED_CLAMP(a) FERRULE_PROVED_CLAMP(b)
#define FERRULE_PROVED_CLAMP(a)                                                                    \
    "ssat " a ", #8, " a ", asr #" FERRULE_TEXT(FERRULE_PROVED_SHIFT) "\n\t"
/** One sum times 256 to int8. */
#define FERRULE_PROVED_ONE(a, multiplier, bias, shift)                                             \
    "add " a ", " bias ", " a shift "\n\t" FERRULE_PROVED_COMPLETE_ONE(a, multiplier)
/** The same if the sum includes the bias. */
#define FERRULE_PROVED_COMPLETE_ONE(a, multiplier)                                                 \
    "smmul " a ", " a ", " multiplier "\n\t" FERRULE_PROVED_CLAMP(a)

/** Two sums times 2 to int8. */
#define FERRULE_EXACT(a, b, bias, multiplier, right, rounding, shift)                              \
    "add " a ", " bias ", " a shift "\n\t"                                                         \
    "add " b ", " bias ", " b shift "\n\t"                                                         \
    "smmulr " a ", " a ", " multiplier "\n\t"                                                      \
    "smmulr " b ", " b ", " multiplier "\n\t" FERRULE_EXACT_ROUND(a, right, rounding)              \
        FERRULE_EXACT_ROUND(b, right, rounding)
/** The same if the sums include the bias. */
#define FERRULE_EXACT_COMPLETE(a, b, multiplier, right, rounding)                                  \
    "smmulr " a ", " a ", " multiplier "\n\t"                                                      \
    "smmulr " b ", " b ", " multiplier "\n\t" FERRULE_EXACT_ROUND(a, right, rounding)              \
        FERRULE_EXACT_ROUND(b, right, rounding)
#define FERRULE_EXACT_ROUND(a, right, rounding)                                                    \
    "add " a ", " a ", " a ", asr #31\n\t"                                                         \
    "add " a ", " a ", " rounding "\n\t"                                                           \
    "asr " a ", " a ", " right "\n\t"                                                              \
    "ssat " a ", #8, " a "\n\t"
/** One sum times 2 to int8. */
#define FERRULE_EXACT_ONE(a, bias, multiplier, right, rounding, shift)                             \
    "add " a ", " bias ", " a shift "\n\t"                                                         \
    "smmulr " a ", " a ", " multiplier "\n\t" FERRULE_EXACT_ROUND(a, right, rounding)

/** @brief Return the stored value of a sum times 256, including the bias. */
static inline int8_t ferrule_proved_s8(uint32_t sum256, int32_t multiplier)
{
    int64_t product = (int64_t)(int32_t)sum256 * multiplier;

    return (int8_t)ferrule_saturate_s8((int32_t)(product >> 32) >> FERRULE_PROVED_SHIFT);
}

/** @brief Return the stored value of a sum times 2, with the channel's words. */
static inline int8_t ferrule_exact_s8(uint32_t sum2, const int32_t *channel)
{
    struct ferrule_scale scale = {(uint32_t)channel[0], channel[1], channel[2], channel[3]};

    return (int8_t)ferrule_saturate_s8(ferrule_scale_sum(sum2, &scale, true));
}

/** A sum times 256 that began with the bias, to int8. */
#define FERRULE_PROVED_BIASED(a, multiplier)                                                       \
    "smmul " a ", " a ", " multiplier "\n\t"                                                       \
    "ssat " a ", #8, " a ", asr #" FERRULE_TEXT(FERRULE_PROVED_SHIFT) "\n\t"

#endif
