/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/pool2d_s16.h"

static inline int32_t maximum(const struct ferrule_pool2d_taps *taps, const int16_t *pixel)
{
    int32_t largest = INT16_MIN;

    for (int32_t i = taps->rows; i > 0; --i) {
        for (int32_t j = taps->columns; j > 0; --j) {
            largest = *pixel > largest ? *pixel : largest;
            pixel += taps->step;
        }
        pixel += taps->to_next_row;
    }
    return largest;
}

#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE

#define FIRST "ldr %[first], [%[window]]\n\t"
#define TAP                                                                                        \
    "ssub16 %[spare], %[first], %[word]\n\t"                                                       \
    "sel %[first], %[first], %[word]\n\t"
#define POOL(text)                                                                                 \
    __asm__ volatile(                                                                              \
        text                                                                                       \
        : [window] "+r"(window), [output] "+r"(output), [pairs] "+r"(pairs), [row] "=&r"(row),     \
          [first] "=&r"(first), [spare] "=&r"(spare), [word] "=&r"(word)                           \
        : [step] "r"(step), [line] "r"(line)                                                       \
        : "cc", "memory")

static inline bool pairs_of_maxima(const struct ferrule_pool2d_taps *taps, const int16_t *window,
                                   int32_t pairs, int16_t *output)
{
    const int32_t step = 2 * taps->step;
    const int32_t line = 2 * taps->to_next_row + taps->columns * step;
    const int16_t *row;
    uint32_t first;
    uint32_t spare;
    uint32_t word;

    if (taps->rows == 2 && taps->columns == 2) {
        POOL(FERRULE_POOL2D_2X2(FIRST, TAP, ""));
    } else if (taps->rows == 3 && taps->columns == 3) {
        POOL(FERRULE_POOL2D_3X3(FIRST, TAP, ""));
    } else {
        return false;
    }
    return true;
}

#endif

static inline void four_maxima(const struct ferrule_pool2d_taps *taps, const int16_t *pixel,
                               int16_t *output)
{
#if FERRULE_HAS_DSP
    uint32_t first = 0x80008000u;
    uint32_t second = 0x80008000u;
    int32_t rows = taps->rows;
    int32_t left;
    uint32_t spare;
    uint32_t w0;
    uint32_t w1;

    __asm__ volatile(
        FERRULE_POOL2D_FOUR("ssub16 %[spare], %[first], %[w0]\n\t"
                            "sel %[first], %[first], %[w0]\n\t"
                            "ssub16 %[spare], %[second], %[w1]\n\t"
                            "sel %[second], %[second], %[w1]\n\t")
        : [first] "+r"(first), [second] "+r"(second), [pixel] "+r"(pixel), [rows] "+r"(rows),
          [left] "=&r"(left), [spare] "=&r"(spare), [w0] "=&r"(w0), [w1] "=&r"(w1)
        : [columns] "r"(taps->columns), [step] "r"(taps->step), [next] "r"(taps->to_next_row)
        : "cc", "memory");
    FERRULE_COPY_WORD(output, &first);
    FERRULE_COPY_WORD(output + 2, &second);
#else
    for (int32_t i = 0; i < 4; ++i) {
        output[i] = (int16_t)maximum(taps, pixel + i);
    }
#endif
}

#define FERRULE_KERNEL              ferrule_max_pool2d_s16
#define FERRULE_VECTORS(run, count) ((void)(count), ferrule_mve_maximum_s16(run))
#define FERRULE_PAIRS               pairs_of_maxima
#define FERRULE_FOUR                four_maxima
#define FERRULE_ONE                 maximum
#include "ferrule/kernels/pool2d_s16.inc.h"
