/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/pool2d_s16.h"

#if FERRULE_HAS_MVE
static void average(struct ferrule_mve_depthwise_s16 *run, int32_t count)
{
    /* The reciprocal of 1 is 1 - 2^-32, so 1 is added to the sum. */
    run->first_weight = count > 1 ? count / 2 : 1;
    run->skipped = (int32_t)(UINT32_MAX / (uint32_t)count + (count > 1 ? 1u : 0u));
    ferrule_mve_average_s16(run);
}
#endif

/* As ferrule_mean, without branches; the quotient of 0 is 0 with either sign. */
static inline int32_t mean_of(int32_t sum, int32_t count)
{
    int32_t sign = -(int32_t)(sum < 0);

    return (sum + ((count / 2) ^ sign) - sign) / count;
}

static inline void four_means(const struct ferrule_pool2d_taps *taps, const int16_t *pixel,
                              int16_t *output)
{
    int32_t count = taps->rows * taps->columns;
    int32_t a = 0;
    int32_t b = 0;
    int32_t c = 0;
    int32_t d = 0;

#if FERRULE_HAS_DSP
    int32_t rows = taps->rows;
    int32_t left;
    uint32_t w0;
    uint32_t w1;

    __asm__ volatile(
        FERRULE_POOL2D_FOUR("sxtah %[a], %[a], %[w0]\n\t"
                            "sxtah %[b], %[b], %[w0], ror #16\n\t"
                            "sxtah %[c], %[c], %[w1]\n\t"
                            "sxtah %[d], %[d], %[w1], ror #16\n\t")
        : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [pixel] "+r"(pixel),
          [rows] "+r"(rows), [left] "=&r"(left), [w0] "=&r"(w0), [w1] "=&r"(w1)
        : [columns] "r"(taps->columns), [step] "r"(taps->step), [next] "r"(taps->to_next_row)
        : "cc", "memory");
#else
    for (int32_t i = taps->rows; i > 0; --i) {
        for (int32_t j = taps->columns; j > 0; --j) {
            a += pixel[0];
            b += pixel[1];
            c += pixel[2];
            d += pixel[3];
            pixel += taps->step;
        }
        pixel += taps->to_next_row;
    }
#endif
    output[0] = (int16_t)mean_of(a, count);
    output[1] = (int16_t)mean_of(b, count);
    output[2] = (int16_t)mean_of(c, count);
    output[3] = (int16_t)mean_of(d, count);
}

static inline int32_t mean(const struct ferrule_pool2d_taps *taps, const int16_t *pixel)
{
    int32_t sum = 0;

    for (int32_t i = taps->rows; i > 0; --i) {
        for (int32_t j = taps->columns; j > 0; --j) {
            sum += *pixel;
            pixel += taps->step;
        }
        pixel += taps->to_next_row;
    }
    return ferrule_mean(sum, taps->rows * taps->columns);
}

#define FERRULE_KERNEL              ferrule_average_pool2d_s16
#define FERRULE_VECTORS(run, count) average(run, count)
#define FERRULE_FOUR                four_means
#define FERRULE_ONE                 mean
#include "ferrule/kernels/pool2d_s16.inc.h"
