/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Vectors of the M-profile Vector Extension for integers: requantisation, and copies.
 *
 * Kernels are inline assembler under FERRULE_HAS_MVE, and C with the same results on other cores.
 * Assemblers differ in these instructions: GNU as 2.40 assembles `vqshrnb` as `vqrshrnb`, which
 * rounds, so neither is used here. In `vmov qd[2], qd[0], ra, rb`, ra goes to the low lane.
 */
#ifndef FERRULE_KERNELS_MVE_H_INCLUDED
#define FERRULE_KERNELS_MVE_H_INCLUDED

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ferrule/kernels/paired.h"

/* Define as 0 to use plain C. */
#ifndef FERRULE_HAS_MVE
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define FERRULE_HAS_MVE 1
#else
#define FERRULE_HAS_MVE 0
#endif
#endif

enum {
    FERRULE_MVE_BYTES = 16, /**< of a vector */
    FERRULE_MVE_LANES = 4   /**< of 32 bits in a vector */
};

/**
 * Assembler that turns the sums of four channels, as 32-bit lanes, into stored values without the
 * zero point: vqrdmulh is round(2 * a * b / 2^32), halves up, as TensorFlow Lite Micro's doubling
 * high product is; vrshl by a negative shift rounds halves up too.
 *
 * TensorFlow Lite Micro's second rounding takes halves away from zero. Halves below zero are
 * therefore reduced by one before (FERRULE_MVE_BELOW), for shifts of at least 1; outputs that are
 * clamped at zero do not need it.
 */
#define FERRULE_MVE_HIGH(sums, multipliers) "vqrdmulh.s32 " sums ", " sums ", " multipliers "\n\t"
#define FERRULE_MVE_BELOW(sums, spare)                                                             \
    "vshr.s32 " spare ", " sums ", #31\n\t"                                                        \
    "vadd.i32 " sums ", " sums ", " spare "\n\t"
#define FERRULE_MVE_SHIFT(sums, shifts) "vrshl.s32 " sums ", " sums ", " shifts "\n\t"

/** @brief The same in C, with the zero point and the clamp. */
static inline int8_t ferrule_mve_store(int32_t sum, int32_t multiplier, int32_t shift,
                                       const struct ferrule_output_s8 *output)
{
    int32_t value = ferrule_requantize(sum, multiplier, shift) + output->zero_point;

    return (int8_t)ferrule_clamp(value, output->low, output->high);
}

/** @brief Return a byte of words that hold bytes in little-endian order. */
static inline int8_t ferrule_mve_byte(const int32_t *words, int32_t index)
{
    return (int8_t)((uint32_t)words[index / 4] >> (8 * (index % 4)));
}

/** @brief Copy bytes; short copies are common, so memcpy is not called. */
static inline void ferrule_mve_copy(int8_t *target, const int8_t *source, int32_t bytes)
{
#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.8 lr, %[bytes], 2f\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[source]], #16\n\t"
                     "vstrb.8 q0, [%[target]], #16\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [target] "+r"(target), [source] "+r"(source)
                     : [bytes] "r"(bytes)
                     : "lr", "q0", "memory");
#else
    (void)memcpy(target, source, (size_t)bytes);
#endif
}

/**
 * @brief Copy `count` runs of `bytes` bytes each, at least one run, from places that are
 * `source_step` bytes apart to places that are `target_step` bytes apart.
 *
 * Loops with tail predication leave the predicate register as it is; compilers have no common name
 * for it in a list of clobbered registers.
 */
static inline void ferrule_mve_copy_apart(int8_t *target, int32_t target_step, const int8_t *source,
                                          int32_t source_step, int32_t bytes, int32_t count)
{
#if FERRULE_HAS_MVE
    if (bytes == FERRULE_MVE_BYTES) {
        __asm__ volatile(
            "dls lr, %[count]\n\t"
            "1:\n\t"
            "vldrb.u8 q0, [%[source]]\n\t"
            "add %[source], %[source], %[source_step]\n\t"
            "vstrb.8 q0, [%[target]]\n\t"
            "add %[target], %[target], %[target_step]\n\t"
            "le lr, 1b\n\t"
            : [target] "+r"(target), [source] "+r"(source)
            : [count] "r"(count), [source_step] "r"(source_step), [target_step] "r"(target_step)
            : "lr", "q0", "memory");
        return;
    }
    const int8_t *from;
    int8_t *to;
    __asm__ volatile(
        "1:\n\t"
        "mov %[from], %[source]\n\t"
        "mov %[to], %[target]\n\t"
        "dlstp.8 lr, %[bytes]\n\t"
        "2:\n\t"
        "vldrb.u8 q0, [%[from]], #16\n\t"
        "vstrb.8 q0, [%[to]], #16\n\t"
        "letp lr, 2b\n\t"
        "add %[source], %[source], %[source_step]\n\t"
        "add %[target], %[target], %[target_step]\n\t"
        "subs %[count], %[count], #1\n\t"
        "bne 1b\n\t"
        : [target] "+r"(target), [source] "+r"(source), [count] "+r"(count), [from] "=&r"(from),
          [to] "=&r"(to)
        : [bytes] "r"(bytes), [source_step] "r"(source_step), [target_step] "r"(target_step)
        : "cc", "lr", "q0", "memory");
#else
    for (int32_t i = 0; i < count; ++i) {
        (void)memcpy(target, source, (size_t)bytes);
        source += source_step;
        target += target_step;
    }
#endif
}

/** @brief Fill bytes. */
static inline int8_t *ferrule_mve_fill(int8_t *target, int32_t bytes, int32_t value)
{
#if FERRULE_HAS_MVE
    int8_t *at = target;

    __asm__ volatile("vdup.8 q0, %[value]\n\t"
                     "wlstp.8 lr, %[bytes], 2f\n\t"
                     "1:\n\t"
                     "vstrb.8 q0, [%[at]], #16\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [at] "+r"(at)
                     : [bytes] "r"(bytes), [value] "r"(value)
                     : "lr", "q0", "memory");
#else
    (void)memset(target, value, (size_t)bytes);
#endif
    return target + bytes;
}

#endif
