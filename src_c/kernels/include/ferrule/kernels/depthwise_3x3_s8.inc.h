/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What the kernels of DEPTHWISE_CONV_2D with a window of 3x3 share. A kernel's source file
 * defines these macros, then includes this file:
 *
 * FERRULE_KERNEL    name of the kernel
 * FERRULE_STRIDE    1 or 2: by how many pixels the window slides
 * FERRULE_IS_EXACT  1 for the exact form of requantisation, 0 for the proved form
 */
#include "ferrule/kernels/depthwise_lines.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_STRIDE) || !defined(FERRULE_IS_EXACT)
#error "define the macros listed at the top of this file"
#endif

enum { LINES = FERRULE_DEPTHWISE_LINES };

#if FERRULE_HAS_DSP
/* A sum to int8, with the multiplier in a register, `free` as another one, and the rounding and the
 * shift at these places of the stack. */
#define EXACT(sum, multiplier, free, rounding, right)                                              \
    "smmulr " sum ", " sum ", " multiplier "\n\t"                                                  \
    "ldr " free ", [sp, #" rounding "]\n\t"                                                        \
    "add " sum ", " sum ", " sum ", asr #31\n\t"                                                   \
    "add " sum ", " sum ", " free "\n\t"                                                           \
    "ldr " free ", [sp, #" right "]\n\t"                                                           \
    "asr " sum ", " sum ", " free "\n\t"                                                           \
    "ssat " sum ", #8, " sum "\n\t"

/* 16 bytes: the first words in the registers that a step takes them from. The table before them
 * has the distances to these places, in halfwords. */
#define ENTER(x, y, z, label)                                                                      \
    "ldr.w " x ", [r0]\n\t"                                                                        \
    "ldr.w " y ", [r0, #4]\n\t"                                                                    \
    "ldr.w " z ", [r0, #8]\n\t"                                                                    \
    "b.w " label "\n\t"

/* clang-format off */
#define FOUR_ENTRIES                                                                               \
    ENTER("r8", "r9", "r10", "1f")                                                                 \
    ENTER("r11", "r8", "r9", "2f")                                                                 \
    ENTER("r10", "r11", "r8", "3f")                                                                \
    ENTER("r9", "r10", "r11", "4f")

/* `end` is the place of the stack that has the last words of a line. */
#define FOUR_STEPS(end)                                                                            \
    "1:\n\t" STEP("r8", "r9", "r10", "r11")                                                        \
    "2:\n\t" STEP("r11", "r8", "r9", "r10")                                                        \
    "3:\n\t" STEP("r10", "r11", "r8", "r9")                                                        \
    "4:\n\t" STEP("r9", "r10", "r11", "r8")                                                        \
    "ldr r11, [sp, #" end "]\n\t"                                                                  \
    "cmp r0, r11\n\t"                                                                              \
    "bne 1b\n\t"
/* clang-format on */

#if FERRULE_IS_EXACT
/* Rounding and shift of the channel at r12, to the stack. */
#define LOAD_EXACT(place) "ldrd r8, r9, [r12, #84]\n\tstrd r8, r9, [sp, #" place "]\n\t"
#else
#define LOAD_EXACT(place)
#endif
#else
static int8_t requantized(uint32_t sum, const struct ferrule_depthwise_channel *channel)
{
#if FERRULE_IS_EXACT
    const int32_t words[] = {0, channel->multiplier, channel->right, channel->rounding};

    return ferrule_exact_s8(sum, words);
#else
    return ferrule_proved_s8(sum, channel->multiplier);
#endif
}
#endif

#if FERRULE_STRIDE == 1
#include "ferrule/kernels/depthwise_3x3_by1.inc.h"
#else
#include "ferrule/kernels/depthwise_3x3_by2.inc.h"
#endif

void FERRULE_KERNEL(const struct ferrule_depthwise_lines_params *params, const int8_t *input,
                    int8_t *output, void *scratch)
{
    static const struct ferrule_depthwise_way way = {TURN_WORDS, OUTPUTS, turn, store_line,
                                                     FERRULE_IS_EXACT};

    ferrule_depthwise_lines(params, input, output, scratch, &way);
}
