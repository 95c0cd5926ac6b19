/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What the functions of `ferrule/kernels/block.h` share: how they go over pairs of pixels and
 * blocks of channels.
 */
#include "ferrule/kernels/block.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/requantize_dsp.h"

#if FERRULE_HAS_DSP

/* One word of both pixels. */
#define WIDEN                                                                                      \
    "ldr r4, [r0, r1]\n\t"                                                                         \
    "ldr r5, [r0], #4\n\t"                                                                         \
    "sxtb16 r6, r5\n\t"                                                                            \
    "sxtb16 r7, r4\n\t"                                                                            \
    "sxtb16 r8, r5, ror #8\n\t"                                                                    \
    "sxtb16 r9, r4, ror #8\n\t"                                                                    \
    "stm r3!, {r6-r9}\n\t"

/* The stack: 0 place in the loop, 4 end of the patches, 8 patches, 12 weights, 16 end of the
 * weights, 20 first pixel, 24 second pixel, 28 next position, 32 source, 36 step, 40 pairs, 44
 * channels of the output, 48 positions, 52 fixed pixel, 56 bytes of a row in the patches, 60 gap
 * between rows, 64 place that widens, 68 rows. */
#define PROLOGUE         PROLOGUE_OF("76", ROWS_PLACE)
#define PROLOGUE_NO_ROWS PROLOGUE_OF("76", "")
#define PROLOGUE_OF(frame, rows_place)                                                             \
    "push {r4-r11, lr}\n\t"                                                                        \
    "sub sp, sp, #" frame "\n\t"                                                                   \
    "ldm r0, {r4-r9}\n\t"                                                                          \
    "add r5, r4, r5\n\t"                                                                           \
    "add r10, r2, r6, lsl #4\n\t"                                                                  \
    "strd r10, r2, [sp, #4]\n\t"                                                                   \
    "strd r4, r5, [sp, #12]\n\t"                                                                   \
    "strd r7, r8, [sp, #44]\n\t"                                                                   \
    "str r9, [sp, #52]\n\t"                                                                        \
    "ldm r1, {r4, r5, r10, r11, r12}\n\t"                                                          \
    "strd r4, r5, [sp, #20]\n\t"                                                                   \
    "strd r10, r11, [sp, #32]\n\t"                                                                 \
    "str r12, [sp, #40]\n\t"                                                                       \
    "adr.w r3, 14f\n\t"                                                                            \
    "cmp r10, #0\n\t"                                                                              \
    "beq 16f\n\t"                                                                                  \
    "adr.w r3, 12f\n\t"                                                                            \
    "adr.w r4, 13f\n\t"                                                                            \
    "lsls r5, r6, #31\n\t"                                                                         \
    "it mi\n\t"                                                                                    \
    "movmi r3, r4\n\t" rows_place "16:\n\t"                                                        \
    "orr r3, r3, #1\n\t"                                                                           \
    "str r3, [sp, #64]\n\t"
/* Rows of whole words are widened in place. */
#define ROWS_PLACE                                                                                 \
    "ldr r4, [r1, #20]\n\t"                                                                        \
    "cbz r4, 16f\n\t"                                                                              \
    "ldrd r0, r5, [r4, #4]\n\t"                                                                    \
    "ldr r7, [r4, #12]\n\t"                                                                        \
    "str r4, [sp, #68]\n\t"                                                                        \
    "adr.w r3, 24f\n\t"                                                                            \
    "cbnz r5, 16f\n\t"                                                                             \
    "lsls r0, r0, #4\n\t"                                                                          \
    "strd r0, r7, [sp, #56]\n\t"                                                                   \
    "adr.w r3, 22f\n\t"                                                                            \
    "adr.w r4, 27f\n\t"                                                                            \
    "cmp r0, #16\n\t"                                                                              \
    "it eq\n\t"                                                                                    \
    "moveq r3, r4\n\t"

/* Each pair of pixels starts here. */
#define PAIR                                                                                       \
    "11:\n\t"                                                                                      \
    "ldrd r0, r1, [sp, #32]\n\t"                                                                   \
    "ldrd r12, r3, [sp, #4]\n\t"                                                                   \
    "add r2, r0, r1, lsl #1\n\t"                                                                   \
    "str r2, [sp, #32]\n\t"                                                                        \
    "ldr pc, [sp, #64]\n\t"                                                                        \
    "12:\n\t" WIDEN "13:\n\t" WIDEN "cmp r3, r12\n\t"                                              \
    "bne 12b\n\t"                                                                                  \
    "14:\n\t"                                                                                      \
    "ldr r1, [sp, #12]\n\t"

/* The other ways to widen, behind the end of a function. */
#define ROWS                                                                                       \
    "22:\n\t"                                                                                      \
    "ldrd r10, r11, [sp, #56]\n\t"                                                                 \
    "23:\n\t"                                                                                      \
    "add r2, r3, r10\n\t"                                                                          \
    "lsls r4, r10, #27\n\t"                                                                        \
    "bmi 26f\n\t"                                                                                  \
    "25:\n\t" WIDEN "26:\n\t" WIDEN "cmp r3, r2\n\t"                                               \
    "bne 25b\n\t"                                                                                  \
    "cmp r3, r12\n\t"                                                                              \
    "beq.w 14b\n\t"                                                                                \
    "add r0, r0, r11\n\t"                                                                          \
    "b 23b\n\t"                                                                                    \
    "27:\n\t"                                                                                      \
    "ldr r11, [sp, #60]\n\t"                                                                       \
    "28:\n\t" WIDEN "add r0, r0, r11\n\t"                                                          \
    "cmp r3, r12\n\t"                                                                              \
    "bne 28b\n\t"                                                                                  \
    "b.w 14b\n\t"                                                                                  \
    "24:\n\t"                                                                                      \
    "mov r2, r1\n\t"                                                                               \
    "mov r1, r0\n\t"                                                                               \
    "ldr r0, [sp, #68]\n\t"                                                                        \
    "ldr r4, [r0, #16]\n\t"                                                                        \
    "blx r4\n\t"                                                                                   \
    "b.w 14b\n\t"

#define EPILOGUE(advance) EPILOGUE_OF("76", advance)
#define EPILOGUE_OF(frame, advance)                                                                \
    "ldr r12, [sp, #16]\n\t"                                                                       \
    "cmp r1, r12\n\t"                                                                              \
    "bne.w 15b\n\t"                                                                                \
    "ldr r12, [sp, #40]\n\t"                                                                       \
    "subs r12, r12, #1\n\t"                                                                        \
    "beq 31f\n\t"                                                                                  \
    "str r12, [sp, #40]\n\t"                                                                       \
    "ldr r12, [sp, #44]\n\t" advance "strd r10, r11, [sp, #20]\n\t"                                \
    "b.w 11b\n\t"                                                                                  \
    "31:\n\t"                                                                                      \
    "add sp, sp, #" frame "\n\t"                                                                   \
    "pop {r4-r11, pc}\n\t"

/* The stored pixels end where the next ones start; r10 and r11 are their pointers. */
#define ADVANCE_DENSE                                                                              \
    "mov r10, r11\n\t"                                                                             \
    "add r11, r11, r12\n\t"

#else

static inline void widen_two(const int8_t *source, int32_t offset, int32_t words, uint32_t *patches)
{
    ferrule_widen(source, words, patches, 4);
    ferrule_widen(source + offset, words, patches + 1, 4);
}

/* The form of a block's constants, and how they are used. */
struct form {
    int32_t before; /**< words before the weights */
    int32_t after;  /**< words after them */
    void (*multiply)(const uint32_t *patches, const int32_t *weights, int32_t words,
                     uint32_t sums[4]);
    int32_t word_words; /**< words of weights per word of the patches */
    void (*requantize)(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                       int8_t stored[4]);
};

static inline void store(const struct ferrule_block *block, const uint32_t *patches, int8_t *pixel,
                         const struct form *form)
{
    const int32_t *at = block->weights;
    const int32_t *end = at + block->weight_bytes / 4;

    if (block->fixed != NULL) {
        (void)memcpy(pixel, block->fixed, (size_t)block->output_c);
    }
    for (int32_t c = 0; at != end; c += 4) {
        const int32_t *weights = at + form->before;
        const int32_t *after = weights + form->word_words * block->words;
        uint32_t sums[4];
        int8_t stored[4];

        form->multiply(patches, weights, block->words, sums);
        form->requantize(sums, at, after, stored);
        for (int32_t i = 0; i < 4; ++i) {
            pixel[block->positions == NULL ? c + i : block->positions[c + i]] = stored[i];
        }
        at = after + form->after;
    }
}

static inline void store_pixels(const struct ferrule_block *block,
                                const struct ferrule_block_pixels *pixels, uint32_t *patches,
                                const struct form *form)
{
    const int8_t *source = pixels->source;
    int8_t *first = pixels->first;
    int8_t *second = pixels->second;

    for (int32_t pairs = pixels->pairs; pairs > 0; --pairs) {
        if (source != NULL) {
            if (pixels->rows != NULL) {
                pixels->rows->gather(pixels->rows, source, pixels->step_bytes, patches);
            } else {
                widen_two(source, pixels->step_bytes, block->words, patches);
            }
            source += 2 * pixels->step_bytes;
        }
        if (second != first) {
            store(block, patches + 1, second, form);
        }
        store(block, patches, first, form);
        first += 2 * block->output_c;
        second += 2 * block->output_c;
    }
}

#define FUNCTION(name, form)                                                                       \
    void name(const struct ferrule_block *block, const struct ferrule_block_pixels *pixels,        \
              uint32_t *patches)                                                                   \
    {                                                                                              \
        store_pixels(block, pixels, patches, form);                                                \
    }

#endif
