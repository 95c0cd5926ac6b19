/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Computation of all output channels of two pixels whose widened patches are in scratch.
 */
#ifndef FERRULE_KERNELS_PAIRED_PIXELS_H_INCLUDED
#define FERRULE_KERNELS_PAIRED_PIXELS_H_INCLUDED

#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/paired.h"

/** Sums of two channels of two pixels. */
struct ferrule_four_sums {
    struct ferrule_pair_sums first;
    struct ferrule_pair_sums second;
};

/** @brief Multiply two patches with one pair of channels; words is positive. */
static inline struct ferrule_four_sums
ferrule_multiply_patches(const uint32_t *patches, const int32_t *weights, int32_t words)
{
    struct ferrule_four_sums sums = {{0, 0}, {0, 0}};
    const int32_t *end = weights + 2 * words;

#if FERRULE_HAS_DSP
    /* The loop below, with pairs of words loaded at once and no register spilled. */
    uint32_t x0;
    uint32_t x1;
    uint32_t w0;
    uint32_t w1;
#define FERRULE_STEP                                                                               \
    "ldrd %[w0], %[w1], [%[weights]], #8\n\t"                                                      \
    "ldrd %[x0], %[x1], [%[patches]], #8\n\t"                                                      \
    "smlad %[bf], %[x0], %[w0], %[bf]\n\t"                                                         \
    "smlad %[bs], %[x1], %[w0], %[bs]\n\t"                                                         \
    "sxtb16 %[w0], %[w0]\n\t"                                                                      \
    "smlad %[af], %[x0], %[w0], %[af]\n\t"                                                         \
    "smlad %[as], %[x1], %[w0], %[as]\n\t"                                                         \
    "ldrd %[x0], %[x1], [%[patches]], #8\n\t"                                                      \
    "smlad %[bf], %[x0], %[w1], %[bf]\n\t"                                                         \
    "smlad %[bs], %[x1], %[w1], %[bs]\n\t"                                                         \
    "sxtb16 %[w1], %[w1]\n\t"                                                                      \
    "smlad %[af], %[x0], %[w1], %[af]\n\t"                                                         \
    "smlad %[as], %[x1], %[w1], %[as]\n\t"
    __asm__("tst %[words], #1\n\t"
            "bne 2f\n"
            "1:\n\t" FERRULE_STEP "2:\n\t" FERRULE_STEP "cmp %[weights], %[end]\n\t"
            "bne 1b\n\t"
            : [bf] "+r"(sums.first.both), [bs] "+r"(sums.second.both), [af] "+r"(sums.first.a),
              [as] "+r"(sums.second.a), [weights] "+r"(weights), [patches] "+r"(patches),
              [x0] "=&r"(x0), [x1] "=&r"(x1), [w0] "=&r"(w0), [w1] "=&r"(w1)
            : [end] "r"(end), [words] "r"(words)
            : "cc", "memory");
#undef FERRULE_STEP
#else
    do {
        ferrule_add_pair(&sums.first, patches[0], (uint32_t)*weights);
        ferrule_add_pair(&sums.second, patches[1], (uint32_t)*weights);
        patches += 2;
        weights += 1;
    } while (weights != end);
#endif
    return sums;
}

/** Parameters shared by all pixels of an output. */
struct ferrule_paired_weights {
    const int32_t *weights;   /**< per pair of channels 2 * words words of two weight pairs */
    const int32_t *channels;  /**< FERRULE_CHANNEL_WORDS per live channel, rounded up to two */
    const int16_t *positions; /**< output channel of each live channel */
    const int8_t *fixed; /**< one output pixel, used for the channels that are not live; null if all
                            are live */
    int32_t words;       /**< products per output / 4, rounded up */
    int32_t live_c;      /**< channels that have weights */
    int32_t output_c;
    struct ferrule_output_s8 output;
};

#endif
