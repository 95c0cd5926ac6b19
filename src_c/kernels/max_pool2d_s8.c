/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/pool2d_run.h"

#define FERRULE_2X2 ferrule_max_pool2d_2x2_s8
#define FERRULE_3X3 ferrule_max_pool2d_3x3_s8
#define FERRULE_ANY ferrule_max_pool2d_any_s8

static void set_pixels(struct ferrule_pool2d_run *run)
{
    (void)run;
}

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_pool2d_run, rows) == 4, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, low) == 20, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, output) == 44, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_pool2d_run, channels) == 56, "used in the assembler below");

/* All windows of a run; the loop over the channels is predicated. The run in r11, its output in r1,
 * the window in r12, the windows left in a frame. */
#define POOL(addresses, taps)                                                                      \
    "push {r4-r11, lr}\n\t"                                                                        \
    "mov r11, r0\n\t"                                                                              \
    "ldr r12, [r11]\n\t"                                                                           \
    "ldrd r1, r2, [r11, #44]\n\t"                                                                  \
    "push {r2, r3}\n\t"                                                                            \
    "ldrd r2, r3, [r11, #20]\n\t"                                                                  \
    "vdup.8 q2, r2\n\t"                                                                            \
    "vdup.8 q3, r3\n\t"                                                                            \
    "1:\n\t"                                                                                       \
    "ldrd r5, r3, [r11, #12]\n\t" addresses "ldr r0, [r11, #56]\n\t"                               \
    "dlstp.8 lr, r0\n\t"                                                                           \
    "mov r0, r1\n\t"                                                                               \
    "2:\n\t" taps "vmax.s8 q0, q0, q2\n\t"                                                         \
    "vmin.s8 q0, q0, q3\n\t"                                                                       \
    "vstrb.8 q0, [r0], #16\n\t"                                                                    \
    "letp lr, 2b\n\t"                                                                              \
    "ldr r0, [sp]\n\t"                                                                             \
    "ldrd r2, r3, [r11, #52]\n\t"                                                                  \
    "subs r0, #1\n\t"                                                                              \
    "str r0, [sp]\n\t"                                                                             \
    "add r12, r12, r2\n\t"                                                                         \
    "add r1, r1, r3\n\t"                                                                           \
    "bne 1b\n\t"                                                                                   \
    "pop {r2, r3}\n\t"                                                                             \
    "pop {r4-r11, pc}\n\t"
#define FIRST(pixel) "vldrb.u8 q0, [" pixel "], #16\n\t"
#define TAP(pixel)                                                                                 \
    "vldrb.u8 q1, [" pixel "], #16\n\t"                                                            \
    "vmax.s8 q0, q0, q1\n\t"
#define ADD(sum, a, b) "add " sum ", " a ", " b "\n\t"

__attribute__((naked)) void FERRULE_2X2(__attribute__((unused))
                                        const struct ferrule_pool2d_run *run)
{
    __asm__(POOL("mov r2, r12\n\t" ADD("r3", "r12", "r3") ADD("r4", "r2", "r5")
                     ADD("r5", "r3", "r5"),
                 FIRST("r2") TAP("r3") TAP("r4") TAP("r5")));
}

__attribute__((naked)) void FERRULE_3X3(__attribute__((unused))
                                        const struct ferrule_pool2d_run *run)
{
    __asm__(POOL("mov r2, r12\n\t" ADD("r4", "r2", "r3") ADD("r6", "r4", "r3") ADD("r7", "r2", "r5")
                     ADD("r8", "r4", "r5") ADD("r9", "r6", "r5") ADD("r3", "r7", "r5")
                         ADD("r10", "r8", "r5") ADD("r5", "r9", "r5"),
                 FIRST("r2") TAP("r4") TAP("r6") TAP("r7") TAP("r8") TAP("r9") TAP("r3") TAP("r10")
                     TAP("r5")));
}

/* Any window: its rows in r6, the row in r4, the pixels left in r7, the pixel in r2. */
__attribute__((naked)) void FERRULE_ANY(__attribute__((unused))
                                        const struct ferrule_pool2d_run *run)
{
    __asm__(POOL("mov r9, r12\n\t"
                 "ldrd r8, r10, [r11, #4]\n\t",
                 "vmov q0, q2\n\t"
                 "mov r4, r9\n\t"
                 "mov r6, r8\n\t"
                 "3:\n\t"
                 "mov r2, r4\n\t"
                 "mov r7, r10\n\t"
                 "4:\n\t"
                 "vldrb.u8 q1, [r2]\n\t"
                 "add r2, r2, r3\n\t"
                 "vmax.s8 q0, q0, q1\n\t"
                 "subs r7, r7, #1\n\t"
                 "bne 4b\n\t"
                 "add r4, r4, r5\n\t"
                 "subs r6, r6, #1\n\t"
                 "bne 3b\n\t"
                 "add r9, r9, #16\n\t"));
}

#else

static inline void pool_rest(const struct ferrule_pool2d_run *run, const int8_t *window,
                             int32_t channels, int8_t *output)
{
    for (int32_t c = 0; c < channels; ++c) {
        const int8_t *line = window + c;
        int32_t largest = run->low;

        for (int32_t i = run->rows; i > 0; --i) {
            const int8_t *pixel = line;

            for (int32_t j = run->width; j > 0; --j) {
                largest = *pixel > largest ? *pixel : largest;
                pixel += run->pixel_bytes;
            }
            line += run->line_bytes;
        }
        output[c] = (int8_t)(largest < run->high ? largest : run->high);
    }
}

#if FERRULE_HAS_DSP

#define TAP(address)                                                                               \
    "ldr %[tap], " address "\n\t"                                                                  \
    "ssub8 %[spare], %[most], %[tap]\n\t"                                                          \
    "sel %[most], %[most], %[tap]\n\t"
/* Some blocks of a window; the rows after the first one follow. */
#define BLOCKS(first, rows)                                                                        \
    "1:\n\t"                                                                                       \
    "ldr %[most], [%[window]]\n\t" first "add %[row], %[window], %[line]\n\t" rows                 \
    "subs %[blocks], #1\n\t"                                                                       \
    "add %[window], #4\n\t"                                                                        \
    "str %[most], [%[output]], #4\n\t"                                                             \
    "bne 1b\n\t"
#define SECOND(row) TAP("[" row ", %[pixel]]")
#define THIRD(row)  SECOND(row) TAP("[" row ", %[pixel], lsl #1]")
#define NEXT        "add %[row], %[row], %[line]\n\t"
#define POOL(text)                                                                                 \
    __asm__ volatile(                                                                              \
        text                                                                                       \
        : [window] "+r"(window), [output] "+r"(at), [blocks] "+r"(left), [row] "=&r"(row),         \
          [most] "=&r"(most), [tap] "=&r"(tap), [spare] "=&r"(spare)                               \
        : [line] "r"(run->line_bytes), [pixel] "r"(run->pixel_bytes)                               \
        : "cc", "memory")

static inline
    __attribute__((always_inline)) void pool_blocks(const struct ferrule_pool2d_run *run,
                                                    const int8_t *window, int32_t blocks,
                                                    int32_t rows, int32_t width, int8_t *output)
{
    const int8_t *row;
    int8_t *at = output;
    int32_t left = blocks;
    uint32_t most;
    uint32_t tap;
    uint32_t spare;

    if (rows == 2 && width == 2) {
        POOL(BLOCKS(SECOND("%[window]"), TAP("[%[row]]") SECOND("%[row]")));
    } else if (rows == 3 && width == 3) {
        POOL(BLOCKS(THIRD("%[window]"),
                    TAP("[%[row]]") THIRD("%[row]") NEXT TAP("[%[row]]") THIRD("%[row]")));
    } else {
        for (; left > 0; --left) {
            row = window;
            most = ferrule_load_word(window);
            for (int32_t i = rows; i > 0; --i) {
                const int8_t *pixel = row;

                for (int32_t j = width; j > 0; --j) {
                    most = ferrule_larger_bytes(most, ferrule_load_word(pixel));
                    pixel += run->pixel_bytes;
                }
                row += run->line_bytes;
            }
            FERRULE_COPY_WORD(at, &most);
            window += FERRULE_POOL2D_BLOCK;
            at += FERRULE_POOL2D_BLOCK;
        }
    }
    ferrule_pool2d_clamp_words(run, blocks, output);
}

#else

static inline int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static inline __attribute__((always_inline)) void pool_blocks(const struct ferrule_pool2d_run *run,
                                                              const int8_t *window, int32_t blocks,
                                                              int32_t rows, int32_t width,
                                                              int8_t *output)
{
    const struct ferrule_pool2d_run own = *run; /* no store can change it */

    for (; blocks > 0; --blocks) {
        const int8_t *row = window;
        int32_t most[4] = {own.low, own.low, own.low, own.low};

        for (int32_t i = rows; i > 0; --i) {
            const int8_t *pixel = row;

            for (int32_t j = width; j > 0; --j) {
                most[0] = larger(most[0], pixel[0]);
                most[1] = larger(most[1], pixel[1]);
                most[2] = larger(most[2], pixel[2]);
                most[3] = larger(most[3], pixel[3]);
                pixel += own.pixel_bytes;
            }
            row += own.line_bytes;
        }
        for (int32_t c = 0; c < 4; ++c) {
            output[c] = (int8_t)(most[c] < own.high ? most[c] : own.high);
        }
        window += FERRULE_POOL2D_BLOCK;
        output += FERRULE_POOL2D_BLOCK;
    }
}

#endif
#endif

#define FERRULE_KERNEL ferrule_max_pool2d_s8
#define FERRULE_POOLS  FERRULE_HAS_MVE
#include "ferrule/kernels/pool2d_s8.inc.h"
