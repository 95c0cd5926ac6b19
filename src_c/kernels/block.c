/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/block.inc.h"

#if FERRULE_HAS_DSP

/* Two products of four channels and two pixels. Of the sums, r2 to r5 are those of the packed
 * channels 0 and 1, then 2 and 3, of the first and second pixel each, r6 to r9 those of the even
 * channels alone. */
#define STEP                                                                                       \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r2, r10, r12, r2\n\t"                                                                   \
    "smlad r3, r11, r12, r3\n\t"                                                                   \
    "smlad r4, r10, lr, r4\n\t"                                                                    \
    "smlad r5, r11, lr, r5\n\t"                                                                    \
    "sxtb16 r12, r12\n\t"                                                                          \
    "sxtb16 lr, lr\n\t"                                                                            \
    "smlad r6, r10, r12, r6\n\t"                                                                   \
    "smlad r7, r11, r12, r7\n\t"                                                                   \
    "smlad r8, r10, lr, r8\n\t"                                                                    \
    "smlad r9, r11, lr, r9\n\t"
#define FIRST_HALF                                                                                 \
    "sxtb16 r12, r12\n\t"                                                                          \
    "sxtb16 lr, lr\n\t"                                                                            \
    "smuad r6, r10, r12\n\t"                                                                       \
    "smuad r7, r11, r12\n\t"                                                                       \
    "smuad r8, r10, lr\n\t"                                                                        \
    "smuad r9, r11, lr\n\t"
/* The sums of the packed channels start with the constants of channels 1 and 3. */
#define FIRST_PROVED                                                                               \
    "ldrd r2, r4, [r1], #8\n\t"                                                                    \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r3, r11, r12, r2\n\t"                                                                   \
    "smlad r2, r10, r12, r2\n\t"                                                                   \
    "smlad r5, r11, lr, r4\n\t"                                                                    \
    "smlad r4, r10, lr, r4\n\t" FIRST_HALF
#define FIRST_EXACT                                                                                \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smuad r2, r10, r12\n\t"                                                                       \
    "smuad r3, r11, r12\n\t"                                                                       \
    "smuad r4, r10, lr\n\t"                                                                        \
    "smuad r5, r11, lr\n\t" FIRST_HALF
#define WORD    STEP STEP /* 96 bytes of code */
#define WORDS_4 WORD WORD WORD WORD

/* The place in the unrolled loop, for one word less than there are. The functions are aligned,
 * since ADR rounds the place of the instruction down to a multiple of four. */
#define LOOP(unrolled)                                                                             \
    "subs r6, r6, #1\n\t"                                                                          \
    "adr.w r3, 30f\n\t"                                                                            \
    "beq 10f\n\t"                                                                                  \
    "rsb r6, r6, #0\n\t"                                                                           \
    "and r6, r6, #" unrolled " - 1\n\t"                                                            \
    "add r6, r6, r6, lsl #1\n\t"                                                                   \
    "adr.w r3, 20f\n\t"                                                                            \
    "add r3, r3, r6, lsl #5\n\t"                                                                   \
    "10:\n\t"                                                                                      \
    "orr r3, r3, #1\n\t"                                                                           \
    "str r3, [sp]\n\t"

/* Each block of channels starts here. */
#define BLOCK(first, loop)                                                                         \
    "15:\n\t"                                                                                      \
    "ldr r0, [sp, #8]\n\t" first STEP "ldr pc, [sp]\n\t"                                           \
    "20:\n\t" loop "ldr r12, [sp, #4]\n\t"                                                         \
    "cmp r0, r12\n\t"                                                                              \
    "bne 20b\n\t"                                                                                  \
    "30:\n\t"                                                                                      \
    "sub r2, r2, r6\n\t"                                                                           \
    "sub r3, r3, r7\n\t"                                                                           \
    "sub r4, r4, r8\n\t"                                                                           \
    "sub r5, r5, r9\n\t"

#define REQUANTIZE_PROVED                                                                          \
    "ldm r1!, {r0, r10, r11}\n\t" FERRULE_PROVED("r6", "r7", "r0", "r10", ", lsl #8")              \
        FERRULE_PROVED_COMPLETE("r2", "r3", "r11") "ldm r1!, {r0, r10, r11}\n\t" FERRULE_PROVED(   \
            "r8", "r9", "r0", "r10", ", lsl #8") FERRULE_PROVED_COMPLETE("r4", "r5", "r11")

#define EXACT_CHANNEL(a, b, shift)                                                                 \
    "ldm r1!, {r0, r10, r11, r12}\n\t" FERRULE_EXACT(a, b, "r0", "r10", "r11", "r12", shift)
#define REQUANTIZE_EXACT                                                                           \
    EXACT_CHANNEL("r6", "r7", ", lsl #1")                                                          \
    EXACT_CHANNEL("r2", "r3", ", asr #7")                                                          \
    EXACT_CHANNEL("r8", "r9", ", lsl #1")                                                          \
    EXACT_CHANNEL("r4", "r5", ", asr #7")

/* The second pixel before the first one, which replaces it if both are the same. */
#define STORE_DENSE                                                                                \
    "ldrd r10, r11, [sp, #20]\n\t"                                                                 \
    "strb r7, [r11], #1\n\t"                                                                       \
    "strb r3, [r11], #1\n\t"                                                                       \
    "strb r9, [r11], #1\n\t"                                                                       \
    "strb r5, [r11], #1\n\t"                                                                       \
    "strb r6, [r10], #1\n\t"                                                                       \
    "strb r2, [r10], #1\n\t"                                                                       \
    "strb r8, [r10], #1\n\t"                                                                       \
    "strb r4, [r10], #1\n\t"                                                                       \
    "strd r10, r11, [sp, #20]\n\t"

#define STORE_AT(second, first)                                                                    \
    "ldrsh r12, [r0], #2\n\t"                                                                      \
    "strb " second ", [r11, r12]\n\t"                                                              \
    "strb " first ", [r10, r12]\n\t"
#define STORE_LISTED                                                                               \
    "ldrd r10, r11, [sp, #20]\n\t"                                                                 \
    "ldr r0, [sp, #28]\n\t" STORE_AT("r7", "r6") STORE_AT("r3", "r2") STORE_AT("r9", "r8")         \
        STORE_AT("r5", "r4") "str r0, [sp, #28]\n\t"

/* The fixed pixel, and the first position again. */
#define START_LISTED                                                                               \
    "ldrd r8, r0, [sp, #48]\n\t"                                                                   \
    "str r8, [sp, #28]\n\t"                                                                        \
    "cbz r0, 19f\n\t"                                                                              \
    "ldrd r2, r3, [sp, #20]\n\t"                                                                   \
    "ldr r4, [sp, #44]\n\t"                                                                        \
    "subs r4, r4, #4\n\t"                                                                          \
    "blt 17f\n\t"                                                                                  \
    "16:\n\t"                                                                                      \
    "ldr r5, [r0], #4\n\t"                                                                         \
    "str r5, [r2], #4\n\t"                                                                         \
    "str r5, [r3], #4\n\t"                                                                         \
    "subs r4, r4, #4\n\t"                                                                          \
    "bge 16b\n\t"                                                                                  \
    "17:\n\t"                                                                                      \
    "adds r4, r4, #4\n\t"                                                                          \
    "beq 19f\n\t"                                                                                  \
    "18:\n\t"                                                                                      \
    "ldrb r5, [r0], #1\n\t"                                                                        \
    "strb r5, [r2], #1\n\t"                                                                        \
    "strb r5, [r3], #1\n\t"                                                                        \
    "subs r4, r4, #1\n\t"                                                                          \
    "bne 18b\n\t"                                                                                  \
    "19:\n\t"

#define ADVANCE_LISTED                                                                             \
    "ldr r11, [sp, #24]\n\t"                                                                       \
    "add r10, r11, r12\n\t"                                                                        \
    "add r11, r10, r12\n\t"

#define FUNCTION(name, unrolled, loop, start, first, requantize, store, advance)                   \
    __attribute__((naked, noinline, aligned(4))) void name(                                        \
        const struct ferrule_block *block __attribute__((unused)),                                 \
        const struct ferrule_block_pixels *pixels __attribute__((unused)),                         \
        uint32_t *patches __attribute__((unused)))                                                 \
    {                                                                                              \
        __asm__(PROLOGUE LOOP(unrolled) PAIR start BLOCK(first, loop)                              \
                    requantize store EPILOGUE(advance) ROWS);                                      \
    }

FUNCTION(ferrule_block_proved, "8", WORDS_4 WORDS_4, "", FIRST_PROVED, REQUANTIZE_PROVED,
         STORE_DENSE, ADVANCE_DENSE)
FUNCTION(ferrule_block_proved_listed, "8", WORDS_4 WORDS_4, START_LISTED, FIRST_PROVED,
         REQUANTIZE_PROVED, STORE_LISTED, ADVANCE_LISTED)
FUNCTION(ferrule_block_exact, "4", WORDS_4, "", FIRST_EXACT, REQUANTIZE_EXACT, STORE_DENSE,
         ADVANCE_DENSE)
FUNCTION(ferrule_block_exact_listed, "4", WORDS_4, START_LISTED, FIRST_EXACT, REQUANTIZE_EXACT,
         STORE_LISTED, ADVANCE_LISTED)

/* Sums in pieces of FERRULE_BLOCK_PIECE words, the first of which may be shorter. The packed sums
 * of a piece begin with those of the even channels before it, so that they differ from them by the
 * piece's sums of the odd channels. Above the other numbers, the stack has 76 the sums of the odd
 * channels, 92 end of the piece, 96 end of the first piece. */
#define PIECES_PLACE                                                                               \
    "subs r6, r6, #1\n\t"                                                                          \
    "and r3, r6, #" FERRULE_TEXT(                                                                  \
        FERRULE_BLOCK_PIECE) " - 1\n\t"                                                            \
                             "adds r3, r3, #1\n\t"                                                 \
                             "add r3, r2, r3, lsl #4\n\t"                                          \
                             "str r3, [sp, #96]\n\t"                                               \
                             "tst r6, #" FERRULE_TEXT(                                             \
                                 FERRULE_BLOCK_PIECE) " - 1\n\t"                                   \
                                                      "adr.w r3, 30f\n\t"                          \
                                                      "beq 10f\n\t"                                \
                                                      "rsb r6, r6, #0\n\t"                         \
                                                      "and r6, r6, #3\n\t"                         \
                                                      "add r6, r6, r6, lsl #1\n\t"                 \
                                                      "adr.w r3, 20f\n\t"                          \
                                                      "add r3, r3, r6, lsl #5\n\t"                 \
                                                      "10:\n\t"                                    \
                                                      "orr r3, r3, #1\n\t"                         \
                                                      "str r3, [sp]\n\t"
#define PIECES_BLOCK                                                                               \
    "15:\n\t"                                                                                      \
    "ldr r0, [sp, #8]\n\t"                                                                         \
    "ldr r12, [sp, #96]\n\t"                                                                       \
    "movs r2, #0\n\t"                                                                              \
    "movs r3, #0\n\t"                                                                              \
    "strd r2, r3, [sp, #76]\n\t"                                                                   \
    "strd r2, r3, [sp, #84]\n\t"                                                                   \
    "str r12, [sp, #92]\n\t" FIRST_EXACT STEP "ldr pc, [sp]\n\t"                                   \
    "20:\n\t" WORDS_4 "ldr r12, [sp, #92]\n\t"                                                     \
    "cmp r0, r12\n\t"                                                                              \
    "bne.w 20b\n\t"                                                                                \
    "30:\n\t"                                                                                      \
    "sub r2, r2, r6\n\t"                                                                           \
    "sub r3, r3, r7\n\t"                                                                           \
    "sub r4, r4, r8\n\t"                                                                           \
    "sub r5, r5, r9\n\t"                                                                           \
    "ldrd r10, r11, [sp, #76]\n\t"                                                                 \
    "ldrd r12, lr, [sp, #84]\n\t"                                                                  \
    "add r2, r10, r2, asr #8\n\t"                                                                  \
    "add r3, r11, r3, asr #8\n\t"                                                                  \
    "add r4, r12, r4, asr #8\n\t"                                                                  \
    "add r5, lr, r5, asr #8\n\t"                                                                   \
    "ldr r10, [sp, #4]\n\t"                                                                        \
    "cmp r0, r10\n\t"                                                                              \
    "beq 21f\n\t"                                                                                  \
    "strd r2, r3, [sp, #76]\n\t"                                                                   \
    "strd r4, r5, [sp, #84]\n\t"                                                                   \
    "ldr r12, [sp, #92]\n\t"                                                                       \
    "add r12, r12, #" FERRULE_TEXT(                                                                \
        FERRULE_BLOCK_PIECE) " * 16\n\t"                                                           \
                             "str r12, [sp, #92]\n\t"                                              \
                             "mov r2, r6\n\t"                                                      \
                             "mov r3, r7\n\t"                                                      \
                             "mov r4, r8\n\t"                                                      \
                             "mov r5, r9\n\t"                                                      \
                             "b.w 20b\n\t"                                                         \
                             "21:\n\t" EXACT_CHANNEL("r6", "r7", ", lsl #1")                       \
                                 EXACT_CHANNEL("r2", "r3", ", lsl #1")                             \
                                     EXACT_CHANNEL("r8", "r9", ", lsl #1")                         \
                                         EXACT_CHANNEL("r4", "r5", ", lsl #1")

#define PIECES_FUNCTION(name, start, store, advance)                                               \
    __attribute__((naked, noinline, aligned(4))) void name(                                        \
        const struct ferrule_block *block __attribute__((unused)),                                 \
        const struct ferrule_block_pixels *pixels __attribute__((unused)),                         \
        uint32_t *patches __attribute__((unused)))                                                 \
    {                                                                                              \
        __asm__(PROLOGUE_OF("100", ROWS_PLACE)                                                     \
                    PIECES_PLACE PAIR start PIECES_BLOCK store EPILOGUE_OF("100", advance) ROWS);  \
    }

PIECES_FUNCTION(ferrule_block_pieces, "", STORE_DENSE, ADVANCE_DENSE)
PIECES_FUNCTION(ferrule_block_pieces_listed, START_LISTED, STORE_LISTED, ADVANCE_LISTED)

/* One byte of both pixels. Every second one ends a word; the patches are aligned to words. */
#define WIDEN_BYTE                                                                                 \
    "ldrsb r4, [r0, r2]\n\t"                                                                       \
    "ldrsb r5, [r0], #1\n\t"                                                                       \
    "strh r4, [r3, #4]\n\t"                                                                        \
    "strh r5, [r3], #2\n\t"                                                                        \
    "tst r3, #2\n\t"                                                                               \
    "it eq\n\t"                                                                                    \
    "addeq r3, r3, #4\n\t"

__attribute__((naked, noinline, aligned(4))) void
ferrule_block_gather(const struct ferrule_block_rows *rows __attribute__((unused)),
                     const int8_t *source __attribute__((unused)),
                     int32_t offset __attribute__((unused)),
                     uint32_t *patches __attribute__((unused)))
{
    __asm__("push {r4-r11, lr}\n\t"
            "ldrd lr, r12, [r0]\n\t"      /* count, words */
            "ldrd r10, r11, [r0, #8]\n\t" /* rest, step */
            "mov r0, r1\n\t"
            "mov r1, r2\n\t"
            "cmp r10, #1\n\t"
            "beq 10f\n\t"
            "11:\n\t"
            "cmp r12, #0\n\t"
            "beq 4f\n\t"
            "push {r0, lr}\n\t"
            "cmp r12, #1\n\t"
            "bne 1f\n\t"
            "8:\n\t" WIDEN "add r0, r0, r11\n\t"
            "subs lr, lr, #1\n\t"
            "bne 8b\n\t"
            "b 9f\n\t"
            "1:\n\t"
            "movs r2, r12\n\t"
            "lsls r4, r2, #31\n\t"
            "beq 2f\n\t" WIDEN "subs r2, r2, #1\n\t"
            "beq 3f\n\t"
            "2:\n\t" WIDEN WIDEN "subs r2, r2, #2\n\t"
            "bne 2b\n\t"
            "3:\n\t"
            "add r0, r0, r11\n\t"
            "subs lr, lr, #1\n\t"
            "bne 1b\n\t"
            "9:\n\t"
            "pop {r0, lr}\n\t"
            "4:\n\t"
            "cmp r10, #0\n\t"
            "beq 7f\n\t"
            "mov r2, r1\n\t"
            "add r11, r11, r12, lsl #2\n\t"
            "sub r11, r11, r10\n\t"
            "add r0, r0, r12, lsl #2\n\t"
            "5:\n\t"
            "mov r1, r10\n\t"
            "6:\n\t" WIDEN_BYTE "subs r1, r1, #1\n\t"
            "bne 6b\n\t"
            "add r0, r0, r11\n\t"
            "subs lr, lr, #1\n\t"
            "bne 5b\n\t"
            "7:\n\t"
            "pop {r4-r11, pc}\n\t"
            "10:\n\t" /* three rows of nine bytes are 3x3 pixels of three channels */
            "cmp r12, #2\n\t"
            "it eq\n\t"
            "cmpeq lr, #3\n\t"
            "bne 11b\n\t" WIDEN WIDEN "add r0, r0, r11\n\t" WIDEN WIDEN
            "add r0, r0, r11\n\t" WIDEN WIDEN "add r11, r11, #8\n\t"
            "ldrsb r8, [r0]\n\t"
            "ldrsb r9, [r0, r1]\n\t"
            "sub r0, r0, r11\n\t"
            "ldrsb r6, [r0]\n\t"
            "ldrsb r7, [r0, r1]\n\t"
            "sub r0, r0, r11\n\t"
            "ldrsb r4, [r0]\n\t"
            "ldrsb r5, [r0, r1]\n\t"
            "pkhbt r6, r4, r6, lsl #16\n\t"
            "pkhbt r7, r5, r7, lsl #16\n\t"
            "stm r3, {r6-r9}\n\t"
            "pop {r4-r11, pc}\n\t");
}

__attribute__((naked, noinline, aligned(4))) void
ferrule_block_gather_lines(const struct ferrule_block_rows *rows __attribute__((unused)),
                           const int8_t *source __attribute__((unused)),
                           int32_t offset __attribute__((unused)),
                           uint32_t *patches __attribute__((unused)))
{
    __asm__("push {r4-r11, lr}\n\t"
            "ldrd lr, r12, [r0]\n\t"      /* count, words */
            "ldr r11, [r0, #12]\n\t"      /* step */
            "ldrd r10, r4, [r0, #20]\n\t" /* lines, their step */
            "push {r4, lr}\n\t"
            "mov r0, r1\n\t"
            "mov r1, r2\n\t"
            "13:\n\t"
            "cmp r12, #1\n\t"
            "bne 15f\n\t"
            "14:\n\t" WIDEN "add r0, r0, r11\n\t"
            "subs lr, lr, #1\n\t"
            "bne 14b\n\t"
            "b 18f\n\t"
            "15:\n\t"
            "movs r2, r12\n\t"
            "lsls r4, r2, #31\n\t"
            "beq 16f\n\t" WIDEN "subs r2, r2, #1\n\t"
            "16:\n\t" WIDEN WIDEN "subs r2, r2, #2\n\t"
            "bne 16b\n\t"
            "add r0, r0, r11\n\t"
            "subs lr, lr, #1\n\t"
            "bne 15b\n\t"
            "18:\n\t"
            "ldrd r4, lr, [sp]\n\t"
            "add r0, r0, r4\n\t"
            "subs r10, r10, #1\n\t"
            "bne 13b\n\t"
            "add sp, sp, #8\n\t"
            "pop {r4-r11, pc}\n\t");
}

#else

void ferrule_block_gather(const struct ferrule_block_rows *rows, const int8_t *source,
                          int32_t offset, uint32_t *patches)
{
    uint32_t *rest = patches + 4 * rows->count * rows->words;
    int16_t *at = (int16_t *)rest;

    for (int32_t i = 0; i < rows->count; ++i) {
        widen_two(source, offset, rows->words, patches);
        source += 4 * rows->words;
        patches += 4 * rows->words;
        for (int32_t k = 0; k < rows->rest; ++k) {
            at[0] = source[k];
            at[2] = source[k + offset];
            at += (i * rows->rest + k) % 2 == 0 ? 1 : 3;
        }
        source += rows->step_bytes;
    }
}

void ferrule_block_gather_lines(const struct ferrule_block_rows *rows, const int8_t *source,
                                int32_t offset, uint32_t *patches)
{
    for (int32_t line = 0; line < rows->lines; ++line) {
        for (int32_t i = 0; i < rows->count; ++i) {
            widen_two(source, offset, rows->words, patches);
            source += 4 * rows->words + rows->step_bytes;
            patches += 4 * rows->words;
        }
        source += rows->line_step_bytes;
    }
}

/* The sums of a block's channels for one pixel; of channels 1 and 3 they are times 256. */
static void multiply(const uint32_t *patches, const int32_t *weights, int32_t words,
                     uint32_t sums[4])
{
    struct ferrule_pair_sums low = {0, 0};
    struct ferrule_pair_sums high = {0, 0};

    for (int32_t i = 0; i < 2 * words; ++i) {
        ferrule_add_pair(&low, patches[2 * i], (uint32_t)weights[2 * i]);
        ferrule_add_pair(&high, patches[2 * i], (uint32_t)weights[2 * i + 1]);
    }
    sums[0] = low.a;
    sums[1] = low.both - low.a;
    sums[2] = high.a;
    sums[3] = high.both - high.a;
}

/* The same with all sums times 1, of any size. */
static void multiply_pieces(const uint32_t *patches, const int32_t *weights, int32_t words,
                            uint32_t sums[4])
{
    uint32_t odd[2] = {0, 0};
    struct ferrule_pair_sums pairs[2] = {{0, 0}, {0, 0}};

    for (int32_t i = 0; i < 2 * words; ++i) {
        bool last = (2 * words - 1 - i) % (2 * FERRULE_BLOCK_PIECE) == 0;

        for (int32_t c = 0; c < 2; ++c) {
            ferrule_add_pair(&pairs[c], patches[2 * i], (uint32_t)weights[2 * i + c]);
            if (last) {
                odd[c] += (uint32_t)((int32_t)(pairs[c].both - pairs[c].a) >> 8);
                pairs[c].both = pairs[c].a;
            }
        }
    }
    sums[0] = pairs[0].a;
    sums[1] = odd[0];
    sums[2] = pairs[1].a;
    sums[3] = odd[1];
}

static void proved(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                   int8_t stored[4])
{
    for (int32_t i = 0; i < 2; ++i) {
        stored[2 * i] = ferrule_proved_s8((sums[2 * i] << 8) + (uint32_t)after[1], after[0]);
        stored[2 * i + 1] = ferrule_proved_s8(sums[2 * i + 1] + (uint32_t)before[i], after[2]);
        after += 3;
    }
}

static void exact(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                  int8_t stored[4])
{
    (void)before;
    for (int32_t i = 0; i < 4; i += 2) {
        uint32_t odd = (uint32_t)((int32_t)sums[i + 1] >> 7);

        stored[i] = ferrule_exact_s8(sums[i] << 1, after + FERRULE_EXACT_WORDS * i);
        stored[i + 1] = ferrule_exact_s8(odd, after + FERRULE_EXACT_WORDS * (i + 1));
    }
}

static void by_pieces(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                      int8_t stored[4])
{
    (void)before;
    for (int32_t c = 0; c < 4; ++c) {
        stored[c] = ferrule_exact_s8(sums[c] << 1, after + FERRULE_EXACT_WORDS * c);
    }
}

static const struct form proved_form = {2, 6, multiply, 4, proved};
static const struct form exact_form = {0, 4 * FERRULE_EXACT_WORDS, multiply, 4, exact};
static const struct form pieces_form = {0, 4 * FERRULE_EXACT_WORDS, multiply_pieces, 4, by_pieces};
FUNCTION(ferrule_block_proved, &proved_form)
FUNCTION(ferrule_block_proved_listed, &proved_form)
FUNCTION(ferrule_block_exact, &exact_form)
FUNCTION(ferrule_block_exact_listed, &exact_form)
FUNCTION(ferrule_block_pieces, &pieces_form)
FUNCTION(ferrule_block_pieces_listed, &pieces_form)
#endif
