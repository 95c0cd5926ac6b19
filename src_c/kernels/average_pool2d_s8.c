/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/channel_sums.inc.h"
#include "ferrule/kernels/pool2d_run.h"
#include "ferrule/kernels/requantize.h"

#define FERRULE_2X2 ferrule_average_pool2d_2x2_s8
#define FERRULE_3X3 ferrule_average_pool2d_3x3_s8
#define FERRULE_ANY ferrule_average_pool2d_any_s8

static void set_pixels(struct ferrule_pool2d_run *run)
{
    if (run->rows * run->width < FERRULE_POOL2D_LEAST_PIXELS) {
        ferrule_pool2d_repeat_pixels(run);
    }
    ferrule_pool2d_set_mean(run);
}

void ferrule_average_pool2d_many_s8(const struct ferrule_pool2d_run *run)
{
    const struct ferrule_channel_pixels pixels = {run->rows, run->width, run->line_bytes,
                                                  run->pixel_bytes};
    const int8_t *window = run->first;
    int8_t *output = run->output;

    for (int32_t i = run->count; i > 0; --i) {
        for (int32_t c = 0; c < run->channels; c += FERRULE_CHANNEL_SUMS) {
            int32_t left = run->channels - c;
            int32_t channels = left < FERRULE_CHANNEL_SUMS ? left : (int32_t)FERRULE_CHANNEL_SUMS;
            int32_t sums[FERRULE_CHANNEL_SUMS];

            ferrule_channel_sums(&pixels, window + c, channels, sums);
            for (int32_t k = 0; k < channels; ++k) {
                int32_t mean = ferrule_mean(sums[k], pixels.rows * pixels.width);

                output[k] = (int8_t)ferrule_clamp(mean, run->low, run->high);
            }
            output += channels;
        }
        window += run->window_bytes;
    }
}

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_pool2d_run, line_bytes) == 12,
               "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, low) == 20, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, even) == 28, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, shift) == 40, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, output) == 44, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, window_bytes) == 52,
               "used in the assembler below");

#define TAP(row)                                                                                   \
    "vldrb.s16 q2, [" row "]\n\t"                                                                  \
    "vadd.i16 q0, q0, q2\n\t"                                                                      \
    "vldrb.s16 q3, [" row ", #8]\n\t"                                                              \
    "vadd.i16 q1, q1, q3\n\t"
#define WINDOW(load)                                                                               \
    "ldrd %[line], %[pixel], [%[run], #12]\n\t"                                                    \
    "ldrd %[rows], %[width], [%[run], #4]\n\t"                                                     \
    "vmov.i16 q0, #0\n\t"                                                                          \
    "vmov.i16 q1, #0\n\t"                                                                          \
    "1:\n\t"                                                                                       \
    "mov %[tap], %[window]\n\t"                                                                    \
    "dls lr, %[width]\n\t"                                                                         \
    "2:\n\t" load "add %[tap], %[tap], %[pixel]\n\t"                                               \
    "le lr, 2b\n\t"                                                                                \
    "add %[window], %[window], %[line]\n\t"                                                        \
    "subs %[rows], %[rows], #1\n\t"                                                                \
    "bne 1b\n\t"
/* The means of the sums in q0 and q1, see `ferrule_pool2d_set_mean`. */
#define ONE_MEAN(sums, spare)                                                                      \
    "vshr.s16 " spare ", " sums ", #15\n\t"                                                        \
    "vmla.s16 " sums ", " spare ", %[line]\n\t"                                                    \
    "vadd.i16 " sums ", " sums ", %[pixel]\n\t"
#define SCALED(sums, factors)                                                                      \
    "vmulh.u16 " sums ", " sums ", " factors "\n\t"                                                \
    "vshl.u16 " sums ", %[tap]\n\t"                                                                \
    "vsub.i16 " sums ", " sums ", %[line]\n\t"
#define CLAMPED(sums)                                                                              \
    "vmax.s16 " sums ", " sums ", q2\n\t"                                                          \
    "vmin.s16 " sums ", " sums ", q3\n\t"
#define MEANS                                                                                      \
    "ldrd %[line], %[pixel], [%[run], #28]\n\t" ONE_MEAN("q0", "q2")                               \
        ONE_MEAN("q1", "q3") "ldrd %[pixel], %[tap], [%[run], #36]\n\t"                            \
                             "vdup.16 q2, %[pixel]\n\t"                                            \
                             "rsb %[tap], %[tap], #0\n\t"                                          \
                             "mov %[line], #128\n\t" SCALED("q0", "q2")                            \
                                 SCALED("q1", "q2") "ldrd %[line], %[pixel], [%[run], #20]\n\t"    \
                                                    "vdup.16 q2, %[line]\n\t"                      \
                                                    "vdup.16 q3, %[pixel]\n\t" CLAMPED("q0")       \
                                                        CLAMPED("q1")
#define STORE                                                                                      \
    "vstrb.16 q0, [%[output]]\n\t"                                                                 \
    "vstrb.16 q1, [%[output], #8]\n\t"

static inline void pool_rest(const struct ferrule_pool2d_run *run, const int8_t *window,
                             int32_t channels, int8_t *output)
{
    int32_t line;
    int32_t pixel;
    int32_t rows;
    int32_t width;
    int8_t *tap;

    for (; channels > 0; channels -= 8) {
        const int8_t *next = window + 8;

        __asm__ volatile("vctp.16 %[channels]\n\t" WINDOW("vpst\n\t"
                                                          "vldrbt.s16 q2, [%[tap]]\n\t"
                                                          "vadd.i16 q0, q0, q2\n\t") MEANS
                         "vpst\n\t"
                         "vstrbt.16 q0, [%[output]]\n\t"
                         : [window] "+l"(window), [line] "=&r"(line), [pixel] "=&r"(pixel),
                           [rows] "=&r"(rows), [width] "=&r"(width), [tap] "=&l"(tap)
                         : [run] "r"(run), [channels] "r"(channels), [output] "l"(output)
                         : "cc", "lr", "q0", "q1", "q2", "q3", "memory");
        window = next;
        output += 8;
    }
}

static inline void pool_blocks(const struct ferrule_pool2d_run *run, const int8_t *window,
                               int32_t blocks, int32_t rows, int32_t width, int8_t *output)
{
    (void)rows;
    (void)width;
    for (; blocks > 0; --blocks) {
        const int8_t *next = window + FERRULE_POOL2D_BLOCK;
        int32_t line;
        int32_t pixel;
        int32_t left;
        int32_t columns;
        const int8_t *tap;

        __asm__ volatile(WINDOW(TAP("%[tap]")) MEANS STORE
                         : [window] "+l"(window), [line] "=&r"(line), [pixel] "=&r"(pixel),
                           [rows] "=&r"(left), [width] "=&r"(columns), [tap] "=&l"(tap)
                         : [run] "r"(run), [output] "l"(output)
                         : "cc", "lr", "q0", "q1", "q2", "q3", "memory");
        window = next;
        output += FERRULE_POOL2D_BLOCK;
    }
}

/* All windows of 2x2 or 3x3 pixels of a run, eight channels at a time: the window in r12, to the
 * next one r8 bytes, its output in r1, channels in r9, windows left in r10, to the next column r3
 * bytes, to the next row r5, both also in r11 and at [sp, #4]. The limits in q2 and q3, the factor
 * in q4, the bias in q5, 128 in q6. Only low registers can be addresses of bytes that become
 * halfwords. */
#define POOL(addresses, taps, shift)                                                               \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d13}\n\t"                                                                           \
    "ldr r12, [r0]\n\t"                                                                            \
    "ldrd r5, r3, [r0, #12]\n\t"                                                                   \
    "ldrd r1, r10, [r0, #44]\n\t"                                                                  \
    "ldrd r8, r9, [r0, #52]\n\t"                                                                   \
    "ldrd r2, r4, [r0, #20]\n\t"                                                                   \
    "vdup.16 q2, r2\n\t"                                                                           \
    "vdup.16 q3, r4\n\t"                                                                           \
    "ldrd r2, r4, [r0, #32]\n\t"                                                                   \
    "vdup.16 q5, r2\n\t"                                                                           \
    "vdup.16 q4, r4\n\t"                                                                           \
    "mov r2, #128\n\t"                                                                             \
    "vdup.16 q6, r2\n\t"                                                                           \
    "mov r11, r3\n\t"                                                                              \
    "push {r4, r5}\n\t"                                                                            \
    "1:\n\t" addresses "mov r0, r1\n\t"                                                            \
    "dlstp.16 lr, r9\n\t"                                                                          \
    "2:\n\t" taps "vadd.i16 q0, q0, q5\n\t"                                                        \
    "vmulh.u16 q0, q0, q4\n\t"                                                                     \
    "vshr.u16 q0, q0, " shift "\n\t"                                                               \
    "vsub.i16 q0, q0, q6\n\t"                                                                      \
    "vmax.s16 q0, q0, q2\n\t"                                                                      \
    "vmin.s16 q0, q0, q3\n\t"                                                                      \
    "vstrb.16 q0, [r0], #8\n\t"                                                                    \
    "letp lr, 2b\n\t"                                                                              \
    "add r12, r12, r8\n\t"                                                                         \
    "add r1, r1, r9\n\t"                                                                           \
    "subs r10, r10, #1\n\t"                                                                        \
    "bne 1b\n\t"                                                                                   \
    "add sp, #8\n\t"                                                                               \
    "vpop {d8-d13}\n\t"                                                                            \
    "pop {r4-r11, pc}\n\t"
#define PIXEL(pixel, step) "vldrb.s16 q1, [" pixel "]" step "\n\tvadd.i16 q0, q0, q1\n\t"
#define TWO(pixel)                                                                                 \
    PIXEL(pixel, "")                                                                               \
    "add " pixel ", " pixel ", r11\n\t" PIXEL(pixel, ", #8") "sub " pixel ", " pixel ", r11\n\t"

/* The number of pixels is even: 1 less for sums below 0. */
__attribute__((naked)) void FERRULE_2X2(__attribute__((unused))
                                        const struct ferrule_pool2d_run *run)
{
    __asm__(POOL("mov r2, r12\n\t"
                 "add r4, r12, r3\n\t"
                 "add r6, r12, r5\n\t"
                 "add r7, r6, r3\n\t",
                 "vldrb.s16 q0, [r2], #8\n\t" PIXEL("r4", ", #8") PIXEL("r6", ", #8")
                     PIXEL("r7", ", #8") "vshr.s16 q1, q0, #15\n\t"
                                         "vadd.i16 q0, q0, q1\n\t",
                 "#1"));
}

/* The first column of the rows in r2, r4 and r6, the second one in r3, r5 and r7. */
__attribute__((naked)) void FERRULE_3X3(__attribute__((unused))
                                        const struct ferrule_pool2d_run *run)
{
    __asm__(POOL("ldr r5, [sp, #4]\n\t"
                 "mov r2, r12\n\t"
                 "add r4, r2, r5\n\t"
                 "add r6, r4, r5\n\t"
                 "add r3, r2, r11\n\t"
                 "add r5, r4, r11\n\t"
                 "add r7, r6, r11\n\t",
                 "vldrb.s16 q0, [r2], #8\n\t" PIXEL("r4", ", #8") PIXEL("r6", ", #8") TWO("r3")
                     TWO("r5") TWO("r7"),
                 "#3"));
}

#else

static inline int8_t mean_of(const struct ferrule_pool2d_run *run, int32_t sum)
{
    return (int8_t)ferrule_clamp(ferrule_pool2d_mean(run, sum), run->low, run->high);
}

static inline void pool_rest(const struct ferrule_pool2d_run *run, const int8_t *window,
                             int32_t channels, int8_t *output)
{
    for (int32_t c = 0; c < channels; ++c) {
        const int8_t *row = window + c;
        int32_t sum = 0;

        for (int32_t i = run->rows; i > 0; --i) {
            const int8_t *pixel = row;

            for (int32_t j = run->width; j > 0; --j) {
                sum += *pixel;
                pixel += run->pixel_bytes;
            }
            row += run->line_bytes;
        }
        output[c] = mean_of(run, sum);
    }
}

#if FERRULE_HAS_DSP

#define ADD_TAP                                                                                    \
    "sxtab16 %[even], %[even], %[tap]\n\t"                                                         \
    "sxtab16 %[odd], %[odd], %[tap], ror #8\n\t"
#define TAP(address) "ldr %[tap], " address "\n\t" ADD_TAP
/* Some blocks of a window; the rows after the first one follow. */
#define BLOCKS(first, rows)                                                                        \
    "1:\n\t"                                                                                       \
    "ldr %[tap], [%[window]]\n\t"                                                                  \
    "sxtb16 %[even], %[tap]\n\t"                                                                   \
    "sxtb16 %[odd], %[tap], ror #8\n\t" first "add %[row], %[window], %[line]\n\t" rows            \
    "mov %[row], #0x8000\n\t" FERRULE_POOL2D_MEANS("%[row]",                                       \
                                                   "%[tap]") "subs %[blocks], #1\n\t"              \
                                                             "add %[window], #4\n\t"               \
                                                             "str %[even], [%[output]], #4\n\t"    \
                                                             "bne 1b\n\t"
#define SECOND(row) TAP("[" row ", %[pixel]]")
#define THIRD(row)  SECOND(row) TAP("[" row ", %[pixel], lsl #1]")
#define NEXT        "add %[row], %[row], %[line]\n\t"
#define POOL(text)                                                                                 \
    __asm__ volatile(                                                                              \
        text                                                                                       \
        : [window] "+r"(window), [output] "+r"(at), [blocks] "+r"(left), [row] "=&r"(row),         \
          [even] "=&r"(even), [odd] "=&r"(odd), [tap] "=&r"(tap)                                   \
        : [line] "r"(run->line_bytes), [pixel] "r"(run->pixel_bytes), [factor] "r"(run->factor)    \
        : "cc", "memory")

static inline
    __attribute__((always_inline)) void pool_blocks(const struct ferrule_pool2d_run *run,
                                                    const int8_t *window, int32_t blocks,
                                                    int32_t rows, int32_t width, int8_t *output)
{
    const int8_t *row;
    int8_t *at = output;
    int32_t left = blocks;
    uint32_t even;
    uint32_t odd;
    uint32_t tap;

    if (rows == 2 && width == 2) {
        POOL(BLOCKS(SECOND("%[window]"), TAP("[%[row]]") SECOND("%[row]")));
    } else if (rows == 3 && width == 3) {
        POOL(BLOCKS(THIRD("%[window]"),
                    TAP("[%[row]]") THIRD("%[row]") NEXT TAP("[%[row]]") THIRD("%[row]")));
    } else {
        for (; left > 0; --left) {
            struct ferrule_sums_of_four sums = {0, 0};

            row = window;
            for (int32_t i = rows; i > 0; --i) {
                ferrule_add_four(&sums, row, width, run->pixel_bytes);
                row += run->line_bytes;
            }
            even = ferrule_pool2d_means(run, sums.even, sums.odd);
            FERRULE_COPY_WORD(at, &even);
            window += FERRULE_POOL2D_BLOCK;
            at += FERRULE_POOL2D_BLOCK;
        }
    }
    ferrule_pool2d_clamp_words(run, blocks, output);
}

#else

static inline
    __attribute__((always_inline)) void pool_blocks(const struct ferrule_pool2d_run *run,
                                                    const int8_t *window, int32_t blocks,
                                                    int32_t rows, int32_t width, int8_t *output)
{
    const struct ferrule_pool2d_run own = *run; /* no store can change it */

    for (; blocks > 0; --blocks) {
        const int8_t *row = window;
        int32_t sums[4] = {0, 0, 0, 0};

        for (int32_t i = rows; i > 0; --i) {
            const int8_t *pixel = row;

            for (int32_t j = width; j > 0; --j) {
                sums[0] += pixel[0];
                sums[1] += pixel[1];
                sums[2] += pixel[2];
                sums[3] += pixel[3];
                pixel += own.pixel_bytes;
            }
            row += own.line_bytes;
        }
        for (int32_t c = 0; c < 4; ++c) {
            output[c] = mean_of(&own, sums[c]);
        }
        window += FERRULE_POOL2D_BLOCK;
        output += FERRULE_POOL2D_BLOCK;
    }
}

#endif
#endif

#define FERRULE_KERNEL ferrule_average_pool2d_s8
#define FERRULE_POOLS  (FERRULE_HAS_MVE ? 2 : 0)
#include "ferrule/kernels/pool2d_s8.inc.h"
