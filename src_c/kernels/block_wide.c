/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks with weights of 16 bits. */
#include "ferrule/kernels/block.inc.h"

#if FERRULE_HAS_DSP

/* Two products with weights of 16 bits: r2 to r5 are the sums of the first pixel, r6 to r9 those of
 * the second, times 256. They start with the constants of their channels. */
#define WIDE_STEP                                                                                  \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r6, r11, r12, r6\n\t"                                                                   \
    "smlad r2, r10, r12, r2\n\t"                                                                   \
    "smlad r7, r11, lr, r7\n\t"                                                                    \
    "smlad r3, r10, lr, r3\n\t"                                                                    \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r8, r11, r12, r8\n\t"                                                                   \
    "smlad r4, r10, r12, r4\n\t"                                                                   \
    "smlad r9, r11, lr, r9\n\t"                                                                    \
    "smlad r5, r10, lr, r5\n\t"
#define FIRST_WIDE_STEP                                                                            \
    "ldm r1!, {r2-r5}\n\t"                                                                         \
    "ldrd r10, r11, [r0], #8\n\t"                                                                  \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r6, r11, r12, r2\n\t"                                                                   \
    "smlad r2, r10, r12, r2\n\t"                                                                   \
    "smlad r7, r11, lr, r3\n\t"                                                                    \
    "smlad r3, r10, lr, r3\n\t"                                                                    \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad r8, r11, r12, r4\n\t"                                                                   \
    "smlad r4, r10, r12, r4\n\t"                                                                   \
    "smlad r9, r11, lr, r5\n\t"                                                                    \
    "smlad r5, r10, lr, r5\n\t"
#define WIDE_WORD  WIDE_STEP WIDE_STEP /* 88 bytes of code */
#define WIDE_WORDS WIDE_WORD WIDE_WORD WIDE_WORD WIDE_WORD WIDE_WORD WIDE_WORD WIDE_WORD
#define WIDE_PLACE                                                                                 \
    "rsb r6, r6, #8\n\t"                                                                           \
    "movs r3, #88\n\t"                                                                             \
    "mul r6, r6, r3\n\t"                                                                           \
    "adr.w r3, 20f\n\t"                                                                            \
    "add r3, r3, r6\n\t"                                                                           \
    "orr r3, r3, #1\n\t"                                                                           \
    "str r3, [sp]\n\t"
#define WIDE_BLOCK                                                                                 \
    "15:\n\t"                                                                                      \
    "ldr r0, [sp, #8]\n\t" FIRST_WIDE_STEP WIDE_STEP "ldr pc, [sp]\n\t"                            \
    "20:\n\t" WIDE_WORDS                                                                           \
    "ldm r1!, {r0, r10, r11, r12}\n\t" FERRULE_PROVED_COMPLETE("r2", "r6", "r0")                   \
        FERRULE_PROVED_COMPLETE("r3", "r7", "r10") FERRULE_PROVED_COMPLETE("r4", "r8", "r11")      \
            FERRULE_PROVED_COMPLETE("r5", "r9", "r12") "ldrd r10, r11, [sp, #20]\n\t"              \
                                                       "strb r6, [r11], #1\n\t"                    \
                                                       "strb r7, [r11], #1\n\t"                    \
                                                       "strb r8, [r11], #1\n\t"                    \
                                                       "strb r9, [r11], #1\n\t"                    \
                                                       "strb r2, [r10], #1\n\t"                    \
                                                       "strb r3, [r10], #1\n\t"                    \
                                                       "strb r4, [r10], #1\n\t"                    \
                                                       "strb r5, [r10], #1\n\t"                    \
                                                       "strd r10, r11, [sp, #20]\n\t"

__attribute__((naked, noinline, aligned(4))) void
ferrule_block_wide(const struct ferrule_block *block __attribute__((unused)),
                   const struct ferrule_block_pixels *pixels __attribute__((unused)),
                   uint32_t *patches __attribute__((unused)))
{
    __asm__(PROLOGUE WIDE_PLACE PAIR WIDE_BLOCK EPILOGUE(ADVANCE_DENSE) ROWS);
}

/* Weights of 16 bits that were packed at run time, for any number of words. Where the first pixel
 * starts is kept, since its pixels may have more channels than the block stores. */
#define TILE_PLACE                                                                                 \
    "subs r6, r6, #1\n\t"                                                                          \
    "adr.w r3, 30f\n\t"                                                                            \
    "beq 10f\n\t"                                                                                  \
    "rsb r6, r6, #0\n\t"                                                                           \
    "and r6, r6, #3\n\t"                                                                           \
    "movs r3, #88\n\t"                                                                             \
    "mul r6, r6, r3\n\t"                                                                           \
    "adr.w r3, 20f\n\t"                                                                            \
    "add r3, r3, r6\n\t"                                                                           \
    "10:\n\t"                                                                                      \
    "orr r3, r3, #1\n\t"                                                                           \
    "str r3, [sp]\n\t"
#define START_TILE                                                                                 \
    "ldr r2, [sp, #20]\n\t"                                                                        \
    "str r2, [sp, #28]\n\t"
#define TILE_BLOCK                                                                                 \
    "15:\n\t"                                                                                      \
    "ldr r0, [sp, #8]\n\t" FIRST_WIDE_STEP WIDE_STEP "ldr pc, [sp]\n\t"                            \
    "20:\n\t" WIDE_WORD WIDE_WORD WIDE_WORD WIDE_WORD "ldr r12, [sp, #4]\n\t"                      \
    "cmp r0, r12\n\t"                                                                              \
    "bne 20b\n\t"                                                                                  \
    "30:\n\t"
#define STORE_TILE                                                                                 \
    "ldrd r10, r11, [sp, #20]\n\t"                                                                 \
    "strb r6, [r11], #1\n\t"                                                                       \
    "strb r7, [r11], #1\n\t"                                                                       \
    "strb r8, [r11], #1\n\t"                                                                       \
    "strb r9, [r11], #1\n\t"                                                                       \
    "strb r2, [r10], #1\n\t"                                                                       \
    "strb r3, [r10], #1\n\t"                                                                       \
    "strb r4, [r10], #1\n\t"                                                                       \
    "strb r5, [r10], #1\n\t"                                                                       \
    "strd r10, r11, [sp, #20]\n\t"
#define TILE_PROVED                                                                                \
    "ldr r0, [r1], #4\n\t" FERRULE_PROVED_COMPLETE("r2", "r6", "r0")                               \
        FERRULE_PROVED_COMPLETE("r3", "r7", "r0") FERRULE_PROVED_COMPLETE("r4", "r8", "r0")        \
            FERRULE_PROVED_COMPLETE("r5", "r9", "r0") STORE_TILE
#define TILE_EXACT                                                                                 \
    "ldm r1!, {r0, r10, r11}\n\t" FERRULE_EXACT_COMPLETE("r2", "r6", "r0", "r10", "r11")           \
        FERRULE_EXACT_COMPLETE("r3", "r7", "r0", "r10", "r11")                                     \
            FERRULE_EXACT_COMPLETE("r4", "r8", "r0", "r10", "r11")                                 \
                FERRULE_EXACT_COMPLETE("r5", "r9", "r0", "r10", "r11") STORE_TILE
#define TILE_SUMS                                                                                  \
    "ldr r10, [sp, #20]\n\t"                                                                       \
    "stm r10!, {r2-r9}\n\t"                                                                        \
    "str r10, [sp, #20]\n\t"
#define ADVANCE_TILE                                                                               \
    "ldr r10, [sp, #28]\n\t"                                                                       \
    "add r10, r10, r12, lsl #1\n\t"                                                                \
    "add r11, r10, r12\n\t"

#define TILE_FUNCTION(name, finish)                                                                \
    __attribute__((naked, noinline, aligned(4))) void name(                                        \
        const struct ferrule_block *block __attribute__((unused)),                                 \
        const struct ferrule_block_pixels *pixels __attribute__((unused)),                         \
        uint32_t *patches __attribute__((unused)))                                                 \
    {                                                                                              \
        __asm__(                                                                                   \
            PROLOGUE_NO_ROWS TILE_PLACE PAIR START_TILE TILE_BLOCK finish EPILOGUE(ADVANCE_TILE)); \
    }

TILE_FUNCTION(ferrule_block_tile_proved, TILE_PROVED)
TILE_FUNCTION(ferrule_block_tile_exact, TILE_EXACT)
TILE_FUNCTION(ferrule_block_tile_sums, TILE_SUMS)

#else

/* The same as `multiply` with weights of 16 bits, which are times 256. */
static void multiply_wide(const uint32_t *patches, const int32_t *weights, int32_t words,
                          uint32_t sums[4])
{
    (void)memset(sums, 0, 4 * sizeof(*sums));
    for (int32_t i = 0; i < 2 * words; ++i) {
        for (int32_t c = 0; c < 4; ++c) {
            sums[c] = ferrule_dual_multiply_add(patches[2 * i], (uint32_t)*weights++, sums[c]);
        }
    }
}

static void wide(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                 int8_t stored[4])
{
    for (int32_t c = 0; c < 4; ++c) {
        stored[c] = ferrule_proved_s8(sums[c] + (uint32_t)before[c], after[c]);
    }
}

static void tile_proved(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                        int8_t stored[4])
{
    for (int32_t c = 0; c < 4; ++c) {
        stored[c] = ferrule_proved_s8(sums[c] + (uint32_t)before[c], after[0]);
    }
}

static void tile_exact(const uint32_t sums[4], const int32_t *before, const int32_t *after,
                       int8_t stored[4])
{
    const int32_t channel[] = {0, after[0], after[1], after[2]};

    for (int32_t c = 0; c < 4; ++c) {
        stored[c] = ferrule_exact_s8(sums[c] + (uint32_t)before[c], channel);
    }
}

static const struct form wide_form = {4, 4, multiply_wide, 8, wide};
static const struct form tile_proved_form = {4, 1, multiply_wide, 8, tile_proved};
static const struct form tile_exact_form = {4, 3, multiply_wide, 8, tile_exact};

FUNCTION(ferrule_block_wide, &wide_form)
FUNCTION(ferrule_block_tile_proved, &tile_proved_form)
FUNCTION(ferrule_block_tile_exact, &tile_exact_form)

void ferrule_block_tile_sums(const struct ferrule_block *block,
                             const struct ferrule_block_pixels *pixels, uint32_t *patches)
{
    int32_t *sums = (int32_t *)pixels->first;
    const int32_t *end = block->weights + block->weight_bytes / 4;

    if (pixels->source != NULL) {
        widen_two(pixels->source, pixels->step_bytes, block->words, patches);
    }
    for (const int32_t *at = block->weights; at != end; at += 4 + 8 * block->words) {
        for (int32_t pixel = 0; pixel < 2; ++pixel) {
            uint32_t each[4];

            multiply_wide(patches + pixel, at + 4, block->words, each);
            for (int32_t c = 0; c < 4; ++c) {
                *sums++ = (int32_t)(each[c] + (uint32_t)at[c]);
            }
        }
    }
}

#endif
