/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Sums of int8 pixels by channel, several channels at a time.
 */
#ifndef FERRULE_KERNELS_CHANNEL_SUMS_H_INCLUDED
#define FERRULE_KERNELS_CHANNEL_SUMS_H_INCLUDED

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/requantize.h"

/** Channels that are added up together. */
#if FERRULE_HAS_MVE
enum { FERRULE_CHANNEL_SUMS = 16 };
#else
enum { FERRULE_CHANNEL_SUMS = 4 };
#endif
enum { FERRULE_NARROW_SUM = 256 /**< the sum of so many int8 has 16 bits */ };

/** Rows of pixels. */
struct ferrule_channel_pixels {
    int32_t rows;
    int32_t width;
    int32_t line_bytes;  /**< to the next row */
    int32_t pixel_bytes; /**< to the next pixel of a row */
};

/** Sums of four channels, 16 bits each. */
struct ferrule_sums_of_four {
    uint32_t even; /**< of channels 0 and 2 */
    uint32_t odd;  /**< of channels 1 and 3 */
};

/** @brief Add a row of pixels of four channels. */
static inline void ferrule_add_four(struct ferrule_sums_of_four *sums, const int8_t *pixel,
                                    int32_t width, int32_t step)
{
    uint32_t even = sums->even;
    uint32_t odd = sums->odd;
    int32_t left = width;

    for (; left > 3; left -= 4) {
        uint32_t first = ferrule_load_word(pixel);
        uint32_t second = ferrule_load_word(pixel + step);
        uint32_t third = ferrule_load_word(pixel + 2 * step);
        uint32_t fourth = ferrule_load_word(pixel + 3 * step);

        even = ferrule_add_even_bytes(even, first);
        odd = ferrule_add_odd_bytes(odd, first);
        even = ferrule_add_even_bytes(even, second);
        odd = ferrule_add_odd_bytes(odd, second);
        even = ferrule_add_even_bytes(even, third);
        odd = ferrule_add_odd_bytes(odd, third);
        even = ferrule_add_even_bytes(even, fourth);
        odd = ferrule_add_odd_bytes(odd, fourth);
        pixel += 4 * step;
    }
    for (; left > 0; --left) {
        uint32_t word = ferrule_load_word(pixel);

        even = ferrule_add_even_bytes(even, word);
        odd = ferrule_add_odd_bytes(odd, word);
        pixel += step;
    }
    sums->even = even;
    sums->odd = odd;
}

/** @brief Add up to FERRULE_NARROW_SUM pixels to the sums of some channels. */
static inline void ferrule_add_narrow(const struct ferrule_channel_pixels *pixels,
                                      const int8_t *first, int32_t channels, int32_t *sums)
{
#if FERRULE_HAS_MVE
    int16_t narrow[FERRULE_CHANNEL_SUMS];
    const int8_t *line = first;
    const int8_t *pixel;
    int32_t rows = pixels->rows;

    if (channels == FERRULE_CHANNEL_SUMS) {
        __asm__ volatile("vmov.i16 q0, #0\n\t"
                         "vmov.i16 q1, #0\n\t"
                         "1:\n\t"
                         "mov %[pixel], %[line]\n\t"
                         "dls lr, %[width]\n\t"
                         "2:\n\t"
                         "vldrb.s16 q2, [%[pixel]]\n\t"
                         "vadd.i16 q0, q0, q2\n\t"
                         "vldrb.s16 q3, [%[pixel], #8]\n\t"
                         "add %[pixel], %[pixel], %[step]\n\t"
                         "vadd.i16 q1, q1, q3\n\t"
                         "le lr, 2b\n\t"
                         "add %[line], %[line], %[line_bytes]\n\t"
                         "subs %[rows], %[rows], #1\n\t"
                         "bne 1b\n\t"
                         "vstrh.16 q0, [%[narrow]]\n\t"
                         "vstrh.16 q1, [%[narrow], #16]\n\t"
                         : [line] "+r"(line), [pixel] "=&l"(pixel), [rows] "+r"(rows)
                         : [width] "r"(pixels->width), [step] "r"(pixels->pixel_bytes),
                           [line_bytes] "r"(pixels->line_bytes), [narrow] "r"(narrow)
                         : "cc", "lr", "q0", "q1", "q2", "q3", "memory");
    }
    for (int32_t c = 0; channels < FERRULE_CHANNEL_SUMS && c < channels; c += 8) {
        line = first + c;
        rows = pixels->rows;
        __asm__ volatile("vctp.16 %[channels]\n\t"
                         "vmov.i16 q0, #0\n\t"
                         "1:\n\t"
                         "mov %[pixel], %[line]\n\t"
                         "dls lr, %[width]\n\t"
                         "2:\n\t"
                         "vpst\n\t"
                         "vldrbt.s16 q1, [%[pixel]]\n\t"
                         "vadd.i16 q0, q0, q1\n\t"
                         "add %[pixel], %[pixel], %[step]\n\t"
                         "le lr, 2b\n\t"
                         "add %[line], %[line], %[line_bytes]\n\t"
                         "subs %[rows], %[rows], #1\n\t"
                         "bne 1b\n\t"
                         "vstrh.16 q0, [%[narrow]]\n\t"
                         : [line] "+r"(line), [pixel] "=&l"(pixel), [rows] "+r"(rows)
                         : [channels] "r"(channels - c), [width] "r"(pixels->width),
                           [step] "r"(pixels->pixel_bytes), [line_bytes] "r"(pixels->line_bytes),
                           [narrow] "r"(narrow + c)
                         : "cc", "lr", "q0", "q1", "memory");
    }
    for (int32_t c = 0; c < channels; ++c) {
        sums[c] = ferrule_add_wrap(sums[c], narrow[c]);
    }
#else
    if (FERRULE_HAS_DSP && channels == 4) {
        struct ferrule_sums_of_four narrow = {0, 0};

        for (int32_t i = 0; i < pixels->rows; ++i) {
            ferrule_add_four(&narrow, first, pixels->width, pixels->pixel_bytes);
            first += pixels->line_bytes;
        }
        sums[0] = ferrule_add_wrap(sums[0], (int16_t)narrow.even);
        sums[1] = ferrule_add_wrap(sums[1], (int16_t)narrow.odd);
        sums[2] = ferrule_add_wrap(sums[2], (int16_t)(narrow.even >> 16));
        sums[3] = ferrule_add_wrap(sums[3], (int16_t)(narrow.odd >> 16));
        return;
    }
    for (int32_t i = 0; i < pixels->rows; ++i) {
        const int8_t *pixel = first;

        if (channels == 4) {
            int32_t row[4] = {0, 0, 0, 0};

            for (int32_t left = pixels->width; left > 0; --left) {
                row[0] += pixel[0];
                row[1] += pixel[1];
                row[2] += pixel[2];
                row[3] += pixel[3];
                pixel += pixels->pixel_bytes;
            }
            sums[0] = ferrule_add_wrap(sums[0], row[0]);
            sums[1] = ferrule_add_wrap(sums[1], row[1]);
            sums[2] = ferrule_add_wrap(sums[2], row[2]);
            sums[3] = ferrule_add_wrap(sums[3], row[3]);
        } else {
            for (int32_t left = pixels->width; left > 0; --left) {
                for (int32_t c = 0; c < channels; ++c) {
                    sums[c] = ferrule_add_wrap(sums[c], pixel[c]);
                }
                pixel += pixels->pixel_bytes;
            }
        }
        first += pixels->line_bytes;
    }
#endif
}

/** @brief Set the sums of up to FERRULE_CHANNEL_SUMS channels; they wrap at 32 bits. */
static inline void ferrule_channel_sums(const struct ferrule_channel_pixels *pixels,
                                        const int8_t *first, int32_t channels, int32_t *sums)
{
    struct ferrule_channel_pixels part = *pixels;
    int32_t rows = pixels->width < FERRULE_NARROW_SUM ? FERRULE_NARROW_SUM / pixels->width : 1;

    for (int32_t c = 0; c < channels; ++c) {
        sums[c] = 0;
    }
    for (int32_t i = 0; i < pixels->rows; i += rows) {
        part.rows = rows < pixels->rows - i ? rows : pixels->rows - i;
        for (int32_t j = 0; j < pixels->width; j += FERRULE_NARROW_SUM) {
            part.width = pixels->width - j < FERRULE_NARROW_SUM ? pixels->width - j
                                                                : (int32_t)FERRULE_NARROW_SUM;
            ferrule_add_narrow(&part, first + j * part.pixel_bytes, channels, sums);
        }
        first += rows * part.line_bytes;
    }
}

/** @brief Return the sum of adjacent int8; it wraps at 32 bits. */
static inline int32_t ferrule_sum_run(const int8_t *first, int32_t count)
{
    int32_t total = 0;
#if FERRULE_HAS_MVE
    __asm__ volatile("mov r12, #0\n\t"
                     "wlstp.8 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[first]], #16\n\t"
                     "vaddva.s8 r12, q0\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     "mov %[total], r12\n\t"
                     : [first] "+r"(first), [total] "=r"(total)
                     : [count] "r"(count)
                     : "r12", "lr", "q0", "memory");
#else
#if FERRULE_HAS_DSP
    while (count >= 4) {
        int32_t words = count / 4 < FERRULE_NARROW_SUM / 2 ? count / 4 : FERRULE_NARROW_SUM / 2;
        struct ferrule_sums_of_four narrow = {0, 0};

        ferrule_add_four(&narrow, first, words, 4);
        total = ferrule_add_wrap(total, (int16_t)narrow.even + (int16_t)(narrow.even >> 16));
        total = ferrule_add_wrap(total, (int16_t)narrow.odd + (int16_t)(narrow.odd >> 16));
        first += 4 * words;
        count -= 4 * words;
    }
#else
    for (; count >= 4; count -= 4) {
        total = ferrule_add_wrap(total, first[0]);
        total = ferrule_add_wrap(total, first[1]);
        total = ferrule_add_wrap(total, first[2]);
        total = ferrule_add_wrap(total, first[3]);
        first += 4;
    }
#endif
    for (; count > 0; --count) {
        total = ferrule_add_wrap(total, *first++);
    }
#endif
    return total;
}

#endif
