/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Pairs of pixels of four channels, widened to 16 bits. A source file defines this macro,
 * then includes this file:
 *
 * FERRULE_WIDENED_BYTES  bytes from a pair of a channel to the next one in scratch, as a number
 */
#include "ferrule/kernels/depthwise_parts.h"
#include "ferrule/kernels/requantize_dsp.h"

#if !defined(FERRULE_WIDENED_BYTES)
#error "define the macro listed at the top of this file"
#endif

#define NEXT "#" FERRULE_TEXT(FERRULE_WIDENED_BYTES) "\n\t"

/* Four adjacent channels: bytes 0 to 3 of a pixel go to channels 0 to 3. `pairs` is positive. */
static void widen_adjacent(const int8_t *source, int32_t pairs, uint32_t *target,
                           const struct ferrule_window_group *group)
{
#if FERRULE_HAS_DSP
    register const int8_t *r0 __asm__("r0") = source;
    register const struct ferrule_window_group *r1 __asm__("r1") = group;
    register int32_t r2 __asm__("r2") = pairs;
    register uint32_t *r3 __asm__("r3") = target;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldr r6, [r1, #12]\n\t"
                     "ldrd r12, lr, [r1, #16]\n\t"
                     "add r4, r3, r6, lsl #2\n\t"
                     "add r5, r4, r6, lsl #2\n\t"
                     "add r6, r5, r6, lsl #2\n"
                     "1:\n\t"
                     "ldr r8, [r0, r12]\n\t"
                     "ldr r7, [r0]\n\t"
                     "add r0, r0, lr\n\t"
                     "pkhbt r9, r7, r8, lsl #16\n\t"
                     "pkhtb r10, r8, r7, asr #16\n\t"
                     "sxtb16 r11, r9\n\t"
                     "sxtb16 r9, r9, ror #8\n\t"
                     "sxtb16 r1, r10\n\t"
                     "sxtb16 r10, r10, ror #8\n\t"
                     "str r11, [r3], " NEXT "str r9, [r4], " NEXT "str r1, [r5], " NEXT
                     "str r10, [r6], " NEXT "subs r2, r2, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
                     :
                     : "r12", "lr", "cc", "memory");
#else
    for (; pairs > 0; --pairs) {
        for (int32_t c = 0; c < FERRULE_WINDOW_GROUP; ++c) {
            target[c * group->channel_words] =
                ferrule_pair(source[c], source[group->step_bytes + c]);
        }
        source += group->word_bytes;
        target += FERRULE_WIDENED_BYTES / 4;
    }
#endif
}

/* The same for channels at any offsets from the first. */
static void widen_apart(const int8_t *source, int32_t pairs, uint32_t *target,
                        const struct ferrule_window_group *group)
{
#if FERRULE_HAS_DSP
    register const int8_t *r0 __asm__("r0") = source;
    register const struct ferrule_window_group *r1 __asm__("r1") = group;
    register int32_t r2 __asm__("r2") = pairs;
    register uint32_t *r3 __asm__("r3") = target;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r1, {r4-r6, r12}\n\t"
                     "ldrd r1, r7, [r1, #16]\n\t"
                     "sub r7, r7, r1\n\t"
                     "push {r7}\n\t"
                     "lsl r12, r12, #2\n\t"
                     "add r7, r12, r12, lsl #1\n"
                     "1:\n\t"
                     "ldrsb r8, [r0]\n\t"
                     "ldrsb r9, [r0, r4]\n\t"
                     "ldrsb r10, [r0, r5]\n\t"
                     "ldrsb r11, [r0, r6]\n\t"
                     "add r0, r0, r1\n\t"
                     "ldrsb lr, [r0]\n\t"
                     "pkhbt r8, r8, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r4]\n\t"
                     "pkhbt r9, r9, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r5]\n\t"
                     "pkhbt r10, r10, lr, lsl #16\n\t"
                     "ldrsb lr, [r0, r6]\n\t"
                     "pkhbt r11, r11, lr, lsl #16\n\t"
                     "ldr lr, [sp]\n\t"
                     "add r0, r0, lr\n\t"
                     "str r9, [r3, r12]\n\t"
                     "str r10, [r3, r12, lsl #1]\n\t"
                     "str r11, [r3, r7]\n\t"
                     "str r8, [r3], " NEXT "subs r2, r2, #1\n\t"
                     "bne 1b\n\t"
                     "pop {r1, r4-r11}"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)
                     :
                     : "r12", "lr", "cc", "memory");
#else
    for (; pairs > 0; --pairs) {
        const int8_t *second = source + group->step_bytes;

        target[0] = ferrule_pair(source[0], second[0]);
        for (int32_t c = 1; c < FERRULE_WINDOW_GROUP; ++c) {
            int32_t offset = group->offsets[c - 1];
            target[c * group->channel_words] = ferrule_pair(source[offset], second[offset]);
        }
        source += group->word_bytes;
        target += FERRULE_WIDENED_BYTES / 4;
    }
#endif
}

static inline void widen_four(const int8_t *source, int32_t pairs, uint32_t *target,
                              const struct ferrule_window_group *group)
{
    if (group->is_adjacent) {
        widen_adjacent(source, pairs, target, group);
    } else {
        widen_apart(source, pairs, target, group);
    }
}

/* Write one half of a word of each of four channels; the other half is outside and stays. */
static void widen_half(const int8_t *source, uint32_t *target,
                       const struct ferrule_window_group *group, int32_t half)
{
    int16_t *halves = (int16_t *)target + half;
    int32_t step = 2 * group->channel_words;

    halves[0] = source[0];
    halves[step] = source[group->offsets[0]];
    halves[2 * step] = source[group->offsets[1]];
    halves[3 * step] = source[group->offsets[2]];
}
