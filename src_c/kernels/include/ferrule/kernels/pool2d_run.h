/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Neighbouring windows of an int8 pool that have the same number of pixels.
 */
#ifndef FERRULE_KERNELS_POOL2D_RUN_H_INCLUDED
#define FERRULE_KERNELS_POOL2D_RUN_H_INCLUDED

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/pool2d.h"

/** Channels that are computed together. */
#if FERRULE_HAS_MVE
enum { FERRULE_POOL2D_BLOCK = 16 };
#else
enum { FERRULE_POOL2D_BLOCK = 4 };
#endif
enum { FERRULE_POOL2D_LEAST_PIXELS = 3 /**< of a mean without a division */ };

struct ferrule_pool2d_run {
    const int8_t *first; /**< the first window */
    int32_t rows;        /**< of a window, inside the image */
    int32_t width;       /**< the same for columns */
    int32_t line_bytes;  /**< to the next row */
    int32_t pixel_bytes; /**< to the next column */
    int32_t low;         /**< limits of the output */
    int32_t high;
    int32_t even;   /**< of a mean: 1 if the number of pixels is even, otherwise 0 */
    int32_t bias;   /**< of a mean: half the pixels, and 128 times the pixels */
    int32_t factor; /**< of a mean: 2^(16 + shift) / pixels, rounded up; with DSP other */
    int32_t shift;  /**< of a mean: to the right */
    int8_t *output;
    int32_t count;        /**< windows, at least 1 */
    int32_t window_bytes; /**< to the next window */
    int32_t channels;
};

/** @brief Set the pixels of each window; rows that are adjacent become one. */
static inline void ferrule_pool2d_set_pixels(struct ferrule_pool2d_run *run,
                                             const struct ferrule_window *window, int32_t rows,
                                             int32_t width)
{
    bool whole = width == window->input_w;

    run->rows = whole ? 1 : rows;
    run->width = whole ? rows * width : width;
    run->pixel_bytes = window->input_c;
    run->line_bytes = window->input_w * window->input_c;
}

/** @brief Return how often pixels are added up that have fewer than
 * FERRULE_POOL2D_LEAST_PIXELS, by steps of 0 bytes: the mean is the same. */
static inline void ferrule_pool2d_repeat_pixels(struct ferrule_pool2d_run *run)
{
    if (run->rows == 2) {
        run->width = 2;
        run->pixel_bytes = 0;
    } else {
        run->rows = 4 / run->width;
        run->line_bytes = 0;
    }
}

/** @brief Prepare for means of as many pixels as the run has.
 *
 * A sum s of c int8 is rounded to nearest, halves away from zero, as floor((s + 128 * c + c / 2 -
 * h) / c) - 128, where h is 1 for an even c and a negative s. The division is a product, exact for
 * all sums of up to 185 pixels. */
static inline void ferrule_pool2d_set_mean(struct ferrule_pool2d_run *run)
{
    uint32_t count = (uint32_t)(run->rows * run->width);
#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE
    /* SMLAWB: 2^32 / c, and so much more that halves of both signs are rounded away from zero. */
    run->factor = (int32_t)(UINT32_MAX / count + 2u);
#else
    uint32_t shift = 0;

    while (count > 2u << shift) {
        ++shift;
    }
    run->even = 1 - (int32_t)(count & 1u);
    run->bias = (int32_t)(128u * count + count / 2u);
    run->factor = (int32_t)(((UINT32_C(65536) << shift) + count - 1u) / count);
    run->shift = (int32_t)shift;
#endif
}

/** @brief Return the mean of a sum, without limits. */
static inline int32_t ferrule_pool2d_mean(const struct ferrule_pool2d_run *run, int32_t sum)
{
#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE
    int32_t result;

    __asm__("smlawb %0, %1, %2, %3" : "=r"(result) : "r"(run->factor), "r"(sum), "r"(0x8000));
    return result >> 16;
#else
    uint32_t shifted = (uint32_t)(run->bias + sum + (sum < 0 ? -run->even : 0));

    return (int32_t)((shifted * (uint32_t)run->factor) >> (16 + run->shift)) - 128;
#endif
}

#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE
/** Assembler that turns sums of four channels (%[even] and %[odd]) into their means, as bytes of
 * %[even]. */
#define FERRULE_POOL2D_MEANS(half, spare)                                                          \
    "smlawt " spare ", %[factor], %[even], " half "\n\t"                                           \
    "smlawb %[even], %[factor], %[even], " half "\n\t"                                             \
    "pkhtb %[even], " spare ", %[even], asr #16\n\t"                                               \
    "smlawt " spare ", %[factor], %[odd], " half "\n\t"                                            \
    "smlawb %[odd], %[factor], %[odd], " half "\n\t"                                               \
    "pkhtb %[odd], " spare ", %[odd], asr #16\n\t"                                                 \
    "uxtb16 %[even], %[even]\n\t"                                                                  \
    "uxtb16 %[odd], %[odd]\n\t"                                                                    \
    "orr %[even], %[even], %[odd], lsl #8\n\t"

/** @brief Return the means of channels 0 and 2, and 1 and 3, as the bytes of a word. */
static inline uint32_t ferrule_pool2d_means(const struct ferrule_pool2d_run *run, uint32_t even,
                                            uint32_t odd)
{
    uint32_t spare;

    __asm__(FERRULE_POOL2D_MEANS("%[half]", "%[spare]")
            : [even] "+r"(even), [odd] "+r"(odd), [spare] "=&r"(spare)
            : [factor] "r"(run->factor), [half] "r"(0x8000));
    return even;
}
#endif

/** @brief Clamp blocks of four channels, if the limits are not those of int8. */
static inline void ferrule_pool2d_clamp_words(const struct ferrule_pool2d_run *run, int32_t blocks,
                                              int8_t *output)
{
    uint32_t low = 0x01010101u * (uint8_t)run->low;
    uint32_t high = 0x01010101u * (uint8_t)run->high;

    if (low == 0x80808080u && high == 0x7f7f7f7fu) {
        return;
    }
    for (; blocks > 0; --blocks) {
        uint32_t word = ferrule_load_word(output);

        word = ferrule_smaller_bytes(ferrule_larger_bytes(word, low), high);
        FERRULE_COPY_WORD(output, &word);
        output += 4;
    }
}

#endif
