/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file SVDF with plain C and, for the DSP extension, with the products of whole words of frames. A
 * kernel's source file defines FERRULE_KERNEL, FERRULE_ENGINE, FERRULE_CHANNELS and FERRULE_STATE
 * as in svdf_rows.inc.h and, for the products of words,
 *
 * FERRULE_PRODUCTS    assembler: adds those of the words in r9 and r10 to r8, with r11 and r12 free
 * FERRULE_NEXT_BYTES  size of FERRULE_PRODUCTS and three more instructions of four bytes
 * FERRULE_OTHERS      bytes of a word beside one frame
 * FERRULE_FRAME_BITS  bits of a frame
 * FERRULE_OTHER_BITS  the other bits of a word
 *
 * then includes this file.
 */
#include "ferrule/kernels/svdf_tile.inc.h"

#if defined(FERRULE_PRODUCTS) && FERRULE_HAS_DSP

/* A word of frames in r9: to the new state and, times the weights, to the sum. */
#define STORE "str r9, [r1], #4\n\tldr r10, [r2], #4\n\t" FERRULE_PRODUCTS
#define NEXT  "ldr r9, [r0, #4]!\n\t" STORE

/* ferrule_advance_filters for whole words. */
__attribute__((naked, aligned(4))) static void advance_words(
    __attribute__((unused)) const FERRULE_STATE *state, __attribute__((unused)) FERRULE_STATE *next,
    __attribute__((unused)) const FERRULE_STATE *weights, __attribute__((unused)) int32_t *sums,
    __attribute__((unused)) int32_t filters, __attribute__((unused)) int32_t words)
{
    /* r0 is FERRULE_OTHERS below the next word's frames, less 4; lr is where the first of them are
     * read. */
    __asm__("push {r4-r12, lr}\n\t"
            "ldrd r4, r5, [sp, #40]\n\t"
            "add r4, r3, r4, lsl #2\n\t"
            "subs r5, r5, #1\n\t" /* all words but the last */
            "rsb r6, r5, #0\n\t"
            "and r6, r6, #3\n\t"
            "movs r7, #" FERRULE_NEXT_BYTES "\n\t"
            "adr.w lr, 2f\n\t"
            "mla lr, r6, r7, lr\n\t"
            "cmp r5, #0\n\t"
            "bne 1f\n\t"
            "adr.w lr, 3f\n\t"
            "1:\n\t"
            "orr lr, lr, #1\n\t"
            "lsl r5, r5, #2\n\t"
            "subs r0, #" FERRULE_OTHERS "\n\t"
            "0:\n\t"
            "ldr r6, [r3]\n\t"
            "movs r8, #0\n\t"
            "add r7, r1, r5\n\t"
            "bx lr\n\t"
            ".balign 4\n\t"
            "2:\n\t" NEXT NEXT NEXT NEXT "cmp r1, r7\n\t"
            "bne 2b\n\t"
            ".balign 4\n\t"
            "3:\n\t"
            "ldr r9, [r0, #" FERRULE_OTHERS "]\n\t"
            "adds r0, #4\n\t"
            "lsr r9, r9, #" FERRULE_FRAME_BITS "\n\t"
            "orr r9, r9, r6, lsl #" FERRULE_OTHER_BITS "\n\t" STORE "str r8, [r3], #4\n\t"
            "cmp r3, r4\n\t"
            "bne 0b\n\t"
            "pop {r4-r12, pc}\n\t");
}

#endif

static void advance(const struct ferrule_svdf_tile *tile, int32_t *sums, int32_t filled)
{
    const int32_t filters = tile->units * tile->params->shape.rank;

    (void)filled;
    ferrule_newest_frames(tile->params, sums, filters);
#if defined(FERRULE_PRODUCTS) && FERRULE_HAS_DSP
    const int32_t in_word = 4 / (int32_t)sizeof(FERRULE_STATE);

    if (tile->params->shape.memory % in_word == 0) {
        advance_words(tile->state, tile->next, tile->weights, sums, filters,
                      tile->params->shape.memory / in_word);
    } else
#endif
    {
        ferrule_advance_filters(tile, sums, filters);
    }
    ferrule_store_units(tile, sums);
}

#define FERRULE_NEWEST_BYTES 0
#include "ferrule/kernels/svdf_rows.inc.h"
