/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/pool2d_s16.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, channels) == 12, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, skipped) == 40, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, pixels) == 56, "used in the assembler");

/* Pixels of whole blocks of 8 channels: the argument in r0, the first column of the window's rows
 * in r1, r2 and r3, the second one in r4, r5 and r6, the output in r7, bytes to the next column in
 * r8, from the third column back to the next block of the second one in r9, the window in r10, the
 * reciprocal in r11. The frame: blocks, pixels left. Sums in q0 and q1, limits in q4 and q5. Only
 * low registers can be addresses of halfwords that become words. */
#define POOL(addresses, taps)                                                                      \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d11}\n\t"                                                                           \
    "sub sp, #8\n\t"                                                                               \
    "ldrd r1, r2, [r0, #48]\n\t"                                                                   \
    "vdup.32 q4, r1\n\t"                                                                           \
    "vdup.32 q5, r2\n\t"                                                                           \
    "ldrd r7, r1, [r0, #8]\n\t"                                                                    \
    "ldr r2, [r0, #56]\n\t"                                                                        \
    "lsr r1, r1, #3\n\t"                                                                           \
    "strd r1, r2, [sp]\n\t"                                                                        \
    "ldr r8, [r0, #28]\n\t"                                                                        \
    "rsb r9, r8, #16\n\t"                                                                          \
    "ldr r10, [r0]\n\t"                                                                            \
    "ldr r11, [r0, #40]\n\t"                                                                       \
    "1:\n\t"                                                                                       \
    "ldr r3, [r0, #24]\n\t"                                                                        \
    "mov r1, r10\n\t"                                                                              \
    "add r2, r1, r3\n\t"                                                                           \
    "add r4, r1, r8\n\t"                                                                           \
    "add r5, r2, r8\n\t" addresses "ldr lr, [sp]\n\t"                                              \
    "dls lr, lr\n\t"                                                                               \
    "2:\n\t"                                                                                       \
    "vldrh.s32 q1, [r1, #8]\n\t"                                                                   \
    "vldrh.s32 q0, [r1], #16\n\t" taps "vqrdmulh.s32 q0, q0, r11\n\t"                              \
    "vqrdmulh.s32 q1, q1, r11\n\t"                                                                 \
    "vmax.s32 q0, q0, q4\n\t"                                                                      \
    "vmax.s32 q1, q1, q4\n\t"                                                                      \
    "vmin.s32 q0, q0, q5\n\t"                                                                      \
    "vmin.s32 q1, q1, q5\n\t"                                                                      \
    "vstrh.32 q0, [r7], #8\n\t"                                                                    \
    "vstrh.32 q1, [r7], #8\n\t"                                                                    \
    "le lr, 2b\n\t"                                                                                \
    "ldr r1, [r0, #32]\n\t"                                                                        \
    "ldr r2, [sp, #4]\n\t"                                                                         \
    "add r10, r10, r1\n\t"                                                                         \
    "subs r2, r2, #1\n\t"                                                                          \
    "str r2, [sp, #4]\n\t"                                                                         \
    "bne 1b\n\t"                                                                                   \
    "add sp, #8\n\t"                                                                               \
    "vpop {d8-d11}\n\t"                                                                            \
    "pop {r4-r11, pc}\n\t"
#define ADD                                                                                        \
    "vadd.i32 q0, q0, q2\n\t"                                                                      \
    "vadd.i32 q1, q1, q3\n\t"
#define LAST(tap)                                                                                  \
    "vldrh.s32 q3, [" tap ", #8]\n\t"                                                              \
    "vldrh.s32 q2, [" tap "], #16\n\t" ADD
#define TAP(tap, step)                                                                             \
    "vldrh.s32 q3, [" tap ", #8]\n\t"                                                              \
    "vldrh.s32 q2, [" tap "]\n\t"                                                                  \
    "add " tap ", " tap ", " step "\n\t" ADD
#define TWO(tap) TAP(tap, "r8") TAP(tap, "r9")

__attribute__((naked)) static void windows_2x2(__attribute__((unused))
                                               const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(POOL("", LAST("r4") LAST("r2") LAST("r5")));
}

__attribute__((naked)) static void windows_3x3(__attribute__((unused))
                                               const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(POOL("add r3, r2, r3\n\t"
                 "add r6, r3, r8\n\t",
                 TWO("r4") LAST("r2") TWO("r5") LAST("r3") TWO("r6")));
}

/* The edges of an image whose windows have 3x3 pixels. */
__attribute__((naked)) static void windows_2x3(__attribute__((unused))
                                               const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(POOL("", TWO("r4") LAST("r2") TWO("r5")));
}

__attribute__((naked)) static void windows_3x2(__attribute__((unused))
                                               const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(POOL("add r3, r2, r3\n\t"
                 "add r6, r3, r8\n\t",
                 LAST("r4") LAST("r2") LAST("r5") LAST("r3") LAST("r6")));
}

static void average(struct ferrule_mve_depthwise_s16 *run, int32_t count)
{
    const bool is_blocks = run->channels % FERRULE_MVE_HALVES == 0;

    run->skipped = count > 1 ? (int32_t)(UINT32_C(0x80000000) / (uint32_t)count) + 1 : INT32_MAX;
    if (is_blocks && run->rows == 3 && run->columns == 3) {
        windows_3x3(run);
    } else if (is_blocks && run->rows == 3 && run->columns == 2) {
        windows_3x2(run);
    } else if (is_blocks && run->rows == 2 && run->columns == 3) {
        windows_2x3(run);
    } else if (is_blocks && run->rows == 2 && run->columns == 2) {
        windows_2x2(run);
    } else {
        ferrule_mve_average_s16(run);
    }
}

#endif

#if FERRULE_HAS_DSP && !FERRULE_HAS_MVE

static inline bool has_reciprocal(int32_t count)
{
    return count > 2 && count < FERRULE_POOL2D_MOST_DIVIDED;
}

static inline int32_t reciprocal_of(int32_t count)
{
    return (int32_t)(UINT32_MAX / (uint32_t)count + 2u);
}

#define FIRST                                                                                      \
    "ldr %[word], [%[window]]\n\t"                                                                 \
    "sxth %[first], %[word]\n\t"                                                                   \
    "asr %[second], %[word], #16\n\t"
#define PLUS                                                                                       \
    "sxtah %[first], %[first], %[word]\n\t"                                                        \
    "add %[second], %[second], %[word], asr #16\n\t"
#define FINISH                                                                                     \
    "smmulr %[first], %[first], %[reciprocal]\n\t"                                                 \
    "smmulr %[second], %[second], %[reciprocal]\n\t"                                               \
    "pkhbt %[first], %[first], %[second], lsl #16\n\t"
#define PAIRS(text)                                                                                \
    __asm__ volatile(                                                                              \
        text                                                                                       \
        : [window] "+r"(window), [output] "+r"(output), [pairs] "+r"(pairs), [row] "=&r"(row),     \
          [first] "=&r"(first), [second] "=&r"(second), [word] "=&r"(word)                         \
        : [step] "r"(step), [line] "r"(line), [reciprocal] "r"(reciprocal)                         \
        : "cc", "memory")

static inline bool pairs_of_means(const struct ferrule_pool2d_taps *taps, const int16_t *window,
                                  int32_t pairs, int16_t *output)
{
    const int32_t step = 2 * taps->step;
    const int32_t line = 2 * taps->to_next_row + taps->columns * step;
    const int32_t reciprocal = reciprocal_of(taps->rows == 2 ? 4 : 9);
    const int16_t *row;
    int32_t first;
    int32_t second;
    uint32_t word;

    if (taps->rows == 2 && taps->columns == 2) {
        PAIRS(FERRULE_POOL2D_2X2(FIRST, PLUS, FINISH));
    } else if (taps->rows == 3 && taps->columns == 3) {
        PAIRS(FERRULE_POOL2D_3X3(FIRST, PLUS, FINISH));
    } else {
        return false;
    }
    return true;
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
#if !FERRULE_HAS_MVE
    if (has_reciprocal(count)) {
        const int32_t reciprocal = reciprocal_of(count);
        const uint32_t low =
            ferrule_pair(ferrule_high_product(a, reciprocal), ferrule_high_product(b, reciprocal));
        const uint32_t high =
            ferrule_pair(ferrule_high_product(c, reciprocal), ferrule_high_product(d, reciprocal));

        FERRULE_COPY_WORD(output, &low);
        FERRULE_COPY_WORD(output + 2, &high);
        return;
    }
#endif
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
#define FERRULE_PAIRS               pairs_of_means
#define FERRULE_FOUR                four_means
#define FERRULE_ONE                 mean
#include "ferrule/kernels/pool2d_s16.inc.h"
