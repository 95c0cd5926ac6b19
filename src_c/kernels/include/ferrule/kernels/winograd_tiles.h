/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The three steps of Winograd's algorithm F(2x2, 3x3) for two tiles: in assembler with the
 * DSP extension, otherwise in plain C.
 */
#ifndef FERRULE_KERNELS_WINOGRAD_TILES_H_INCLUDED
#define FERRULE_KERNELS_WINOGRAD_TILES_H_INCLUDED

#include <stddef.h>
#include <string.h>

#include "ferrule/kernels/requantize_dsp.h"
#include "ferrule/kernels/winograd.h"

/*
 * Two tiles side by side are computed at once. V is, by four input channels: 16 positions, each
 * with channels 0 and 2, then 1 and 3, and of each a word per tile. The sums are by position, tile
 * and output channel.
 */
enum {
    FERRULE_WINOGRAD_TILE = 2,
    FERRULE_WINOGRAD_COLUMNS = 6, /* of the input of two tiles */
    FERRULE_WINOGRAD_ROWS = 4,
    FERRULE_WINOGRAD_TAPS = 9,
    FERRULE_WINOGRAD_V_WORDS = 4 * FERRULE_WINOGRAD_POSITIONS, /* V of four input channels */
    FERRULE_WINOGRAD_SUM_WORDS = 2 * FERRULE_WINOGRAD_BLOCK * FERRULE_WINOGRAD_POSITIONS,
    FERRULE_WINOGRAD_CHUNK_GROUPS = FERRULE_WINOGRAD_CHUNK / 4,
    FERRULE_WINOGRAD_CHUNK_V_WORDS = FERRULE_WINOGRAD_CHUNK_GROUPS * FERRULE_WINOGRAD_V_WORDS,
    FERRULE_WINOGRAD_CHUNK_POSITION_WORDS = 2 * FERRULE_WINOGRAD_CHUNK_GROUPS *
        FERRULE_WINOGRAD_BLOCK, /* of U */
    FERRULE_WINOGRAD_CHUNK_WEIGHTS = FERRULE_WINOGRAD_CHUNK_GROUPS * FERRULE_WINOGRAD_BLOCK *
        FERRULE_WINOGRAD_TAPS /* words of a block */
};

/* The order is that of the frame in ferrule_winograd_tiles. */
struct ferrule_winograd_tiles {
    int32_t *next_sums;
    const uint32_t *v_end;
    int32_t v_bytes;
    const int32_t *sums_end; /* null if products are added */
    const int32_t *u;
    const int32_t *channels;
    int8_t *first;      /* the first pixel of each tile */
    int32_t first_step; /* bytes to the second column, 0 if it is outside */
    int8_t *second;
    int32_t second_step;
    int32_t row_step; /* 0 if the second row is outside */
    const uint32_t *v;
    int32_t blocks;
    int32_t *sums;
    int32_t block_channel_words; /* of `channels` */
    const int32_t *added_end;    /* the end of the sums if products are added to them; else null */
    int32_t finish;              /* whether the output is computed from the sums */
};

#if FERRULE_HAS_DSP
/* clang-format off */
#define STEP(op, offset, a0, a1, a2, a3, a4, a5, a6, a7)                                           \
    "ldrd r10, r11, [r0, #" #offset "]\n\t"                                                        \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    #op " r2, r10, r12" a0 "\n\t"                                                                  \
    #op " r6, r11, r12" a4 "\n\t"                                                                  \
    #op " r3, r10, lr" a1 "\n\t"                                                                   \
    #op " r7, r11, lr" a5 "\n\t"                                                                   \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    #op " r4, r10, r12" a2 "\n\t"                                                                  \
    #op " r8, r11, r12" a6 "\n\t"                                                                  \
    #op " r5, r10, lr" a3 "\n\t"                                                                   \
    #op " r9, r11, lr" a7 "\n\t"
#define ADD_STEP(offset)                                                                           \
    STEP(smlad, offset, ", r2", ", r3", ", r4", ", r5", ", r6", ", r7", ", r8", ", r9")
#define FIRST_STEP(offset) STEP(smuad, offset, "", "", "", "", "", "", "", "")
/* The pieces of requantize_dsp.h for a sum of four times the products; the constants of a channel are
 * in r10 and r11, or in r10, r11, r12 and lr. */
#define PROVED(sum) FERRULE_PROVED_ONE(sum, "r10", "r11", ", lsl #6")
#define PROVED_CHANNELS                                                                            \
    "ldm r9!, {r10, r11}\n\t"                                                                      \
    PROVED("r1") PROVED("r3") PROVED("r5") PROVED("r7")                                            \
    "ldm r9!, {r10, r11}\n\t"                                                                      \
    PROVED("r2") PROVED("r4") PROVED("r6") PROVED("r8")
#define EXACT(sum) FERRULE_EXACT_ONE(sum, "r10", "r11", "r12", "lr", ", asr #1")
#define EXACT_CHANNELS                                                                             \
    "ldm r9!, {r10, r11, r12, lr}\n\t"                                                             \
    EXACT("r1") EXACT("r3") EXACT("r5") EXACT("r7")                                                \
    "ldm r9!, {r10, r11, r12, lr}\n\t"                                                             \
    EXACT("r2") EXACT("r4") EXACT("r6") EXACT("r8")
#define FUNCTION(name)                                                                             \
    ".syntax unified\n\t"                                                                          \
    ".pushsection .text." #name ", \"ax\", %progbits\n\t"                                          \
    ".balign 4\n\t"                                                                                \
    ".thumb\n\t"                                                                                   \
    ".global " #name "\n\t"                                                                        \
    ".type " #name ", %function\n\t"                                                               \
    ".thumb_func\n"                                                                                \
    #name ":\n\t"                                                                                  \
    "push {r4-r11, lr}\n\t"
#define END(name)                                                                                  \
    "pop {r4-r11, pc}\n\t"                                                                         \
    ".size " #name ", . - " #name "\n\t"                                                           \
    ".popsection"

void ferrule_winograd_tiles(const struct ferrule_winograd_tiles *tiles);
void ferrule_winograd_input(const int8_t *pixels, int32_t row_bytes, int32_t pixel_bytes,
                            uint32_t *v, int32_t groups);
void ferrule_winograd_weights(const int32_t *weights, int32_t *u, const int32_t *weights_end);

/* For every block: 16 times the products of the two tiles and four channels, then, for the second
 * and the first tile and each two channels, the four pixels. */
__asm__(FUNCTION(ferrule_winograd_tiles)
        "sub sp, sp, #84\n\t"
        "mov r12, sp\n\t"
        "ldm r0!, {r1-r8}\n\t"
        "stm r12!, {r1-r8}\n\t"
        "ldm r0!, {r1-r9}\n\t"
        "stm r12!, {r1-r9}\n"
        "0:\n\t"
        "ldr r0, [sp, #44]\n\t" /* v */
        "ldr r1, [sp, #16]\n\t" /* u */
        "ldr r10, [sp, #52]\n\t" /* sums */
        "ldr r11, [sp, #8]\n\t"
        "add r11, r0, r11\n\t"
        "strd r10, r11, [sp]\n\t" /* next_sums, v_end */
        "ldr r9, [sp, #60]\n\t" /* added_end */
        "cmp r9, #0\n\t"
        "bne 9f\n"
        "1:\n\t"
        FIRST_STEP(0)
        "2:\n\t"
        ADD_STEP(8)
        ADD_STEP(256)
        ADD_STEP(264)
        ADD_STEP(512)
        ADD_STEP(520)
        ADD_STEP(768)
        ADD_STEP(776)
        "ldrd r10, r11, [sp]\n\t"
        "add r0, r0, #1024\n\t"
        "cmp r0, r11\n\t"
        "bne 3f\n\t"
        "ldrd r12, lr, [sp, #8]\n\t" /* v_bytes, sums_end */
        "stm r10!, {r2-r9}\n\t"
        "add r11, r11, #16\n\t"
        "strd r10, r11, [sp]\n\t"
        "sub r0, r11, r12\n\t"
        "cmp r10, lr\n\t"
        "blo 1b\n\t"
        "b 4f\n"
        "9:\n\t"
        "ldm r10, {r2-r9}\n"
        "3:\n\t"
        ADD_STEP(0)
        "b 2b\n"
        "4:\n\t"
        "ldrd r2, r3, [sp, #60]\n\t" /* added_end, finish */
        "cmp r10, r2\n\t"
        "blo 9b\n\t"
        "cmp r3, #0\n\t"
        "beq 11f\n\t"
        "str r1, [sp, #16]\n\t"
        "ldr r0, [sp, #52]\n\t"
        "add r0, r0, #16\n\t"
        "ldrd r9, r10, [sp, #32]\n\t" /* second, second_step */
        "strd r9, r10, [sp, #72]\n"
        "5:\n\t"
        "ldrd r9, r10, [r0, #128]\n\t"
        "ldrd r11, r12, [r0, #256]\n\t"
        "add r1, r9, r11\n\t"
        "add r2, r10, r12\n\t"
        "sub r5, r9, r11\n\t"
        "sub r6, r10, r12\n\t"
        "ldrd r9, r10, [r0]\n\t"
        "ldrd r11, r12, [r0, #384]\n\t"
        "add r1, r1, r9, lsl #1\n\t"
        "add r2, r2, r10, lsl #1\n\t"
        "sub r5, r5, r11, lsl #1\n\t"
        "sub r6, r6, r12, lsl #1\n\t"
        "ldrd r9, r10, [r0, #160]\n\t"
        "ldrd r11, r12, [r0, #288]\n\t"
        "add r3, r9, r11\n\t"
        "add r4, r10, r12\n\t"
        "sub r7, r9, r11\n\t"
        "sub r8, r10, r12\n\t"
        "ldrd r9, r10, [r0, #32]\n\t"
        "ldrd r11, r12, [r0, #416]\n\t"
        "add r3, r3, r9, lsl #1\n\t"
        "add r4, r4, r10, lsl #1\n\t"
        "sub r7, r7, r11, lsl #1\n\t"
        "sub r8, r8, r12, lsl #1\n\t"
        "add r1, r3, r1, lsl #1\n\t"
        "add r2, r4, r2, lsl #1\n\t"
        "add r5, r7, r5, lsl #1\n\t"
        "add r6, r8, r6, lsl #1\n\t"
        "ldrd r9, r10, [r0, #192]\n\t"
        "ldrd r11, r12, [r0, #320]\n\t"
        "add lr, r9, r11\n\t"
        "sub r9, r9, r11\n\t"
        "add r11, r10, r12\n\t"
        "sub r10, r10, r12\n\t"
        "ldr r12, [r0, #64]\n\t"
        "add lr, lr, r12, lsl #1\n\t"
        "ldr r12, [r0, #68]\n\t"
        "add r11, r11, r12, lsl #1\n\t"
        "ldr r12, [r0, #448]\n\t"
        "sub r9, r9, r12, lsl #1\n\t"
        "ldr r12, [r0, #452]\n\t"
        "sub r10, r10, r12, lsl #1\n\t"
        "add r1, r1, lr\n\t"
        "sub r3, r3, lr\n\t"
        "add r2, r2, r11\n\t"
        "sub r4, r4, r11\n\t"
        "add r5, r5, r9\n\t"
        "sub r7, r7, r9\n\t"
        "add r6, r6, r10\n\t"
        "sub r8, r8, r10\n\t"
        "ldrd r9, r10, [r0, #224]\n\t"
        "ldrd r11, r12, [r0, #352]\n\t"
        "sub r3, r3, r9, lsl #1\n\t"
        "sub r4, r4, r10, lsl #1\n\t"
        "sub r7, r7, r9, lsl #1\n\t"
        "sub r8, r8, r10, lsl #1\n\t"
        "sub r3, r3, r11, lsl #1\n\t"
        "sub r4, r4, r12, lsl #1\n\t"
        "add r7, r7, r11, lsl #1\n\t"
        "add r8, r8, r12, lsl #1\n\t"
        "ldrd r9, r10, [r0, #96]\n\t"
        "ldrd r11, r12, [r0, #480]\n\t"
        "sub r3, r3, r9, lsl #2\n\t"
        "sub r4, r4, r10, lsl #2\n\t"
        "add r7, r7, r11, lsl #2\n\t"
        "add r8, r8, r12, lsl #2\n\t"
        "ldr r10, [sp, #56]\n\t" /* block_channel_words */
        "ldr r9, [sp, #20]\n\t"  /* channels */
        "and r11, r0, #8\n\t"
        "cmp r10, #8\n\t"
        "bne 6f\n\t"
        "add r9, r9, r11, lsl #1\n\t"
        PROVED_CHANNELS
        "b 7f\n"
        "6:\n\t"
        "add r9, r9, r11, lsl #2\n\t"
        EXACT_CHANNELS
        "7:\n\t"
        "ldrd r9, r10, [sp, #72]\n\t"
        "ldr r11, [sp, #40]\n\t"
        "and r12, r0, #8\n\t"
        "add r9, r9, r12, lsr #2\n\t"
        "add r12, r9, r10\n\t"
        "add lr, r9, r11\n\t"
        "add r11, lr, r10\n\t"
        "strb r7, [r11]\n\t"
        "strb r8, [r11, #1]\n\t"
        "strb r5, [lr]\n\t"
        "strb r6, [lr, #1]\n\t"
        "strb r3, [r12]\n\t"
        "strb r4, [r12, #1]\n\t"
        "strb r1, [r9]\n\t"
        "strb r2, [r9, #1]\n\t"
        "add r0, r0, #8\n\t"
        "tst r0, #8\n\t"
        "bne 5b\n\t"
        "ldr r9, [sp, #52]\n\t"
        "add r9, r9, #16\n\t"
        "cmp r0, r9\n\t"
        "beq 8f\n\t"
        "sub r0, r0, #32\n\t"
        "ldrd r9, r10, [sp, #24]\n\t"
        "strd r9, r10, [sp, #72]\n\t"
        "b 5b\n"
        "8:\n\t"
        "ldr r9, [sp, #20]\n\t"
        "ldr r10, [sp, #56]\n\t"
        "add r9, r9, r10, lsl #2\n\t"
        "str r9, [sp, #20]\n\t"
        "ldr r9, [sp, #24]\n\t"
        "add r9, r9, #4\n\t"
        "str r9, [sp, #24]\n\t"
        "ldr r9, [sp, #32]\n\t"
        "add r9, r9, #4\n\t"
        "str r9, [sp, #32]\n\t"
        "ldr r9, [sp, #48]\n\t"
        "subs r9, r9, #1\n\t"
        "str r9, [sp, #48]\n\t"
        "bne 0b\n"
        "11:\n\t"
        "add sp, sp, #84\n\t"
        END(ferrule_winograd_tiles));

/* r0 pixels, r1 row bytes, r2 3 * row bytes, r3 pixel bytes; the columns, transformed downwards, are
 * in the frame: for each, rows 0, 1, 3 and 2 of channels 0 and 2, then of channels 1 and 3. */
#define COLUMN_HALF(rotation)                                                                      \
    "sxtb16 r8, r4" rotation "\n\t"                                                                \
    "sxtb16 r9, r5" rotation "\n\t"                                                                \
    "sxtb16 r10, r6" rotation "\n\t"                                                               \
    "sxtb16 r11, r7" rotation "\n\t"                                                               \
    "ssub16 r8, r8, r10\n\t"                                                                       \
    "ssub16 lr, r10, r9\n\t"                                                                       \
    "ssub16 r11, r9, r11\n\t"                                                                      \
    "sadd16 r9, r9, r10\n\t"                                                                       \
    "stm r12!, {r8, r9, r11, lr}\n\t"
/* Six columns of one row in c0..c5 become the words of two tiles; c0 and r12 are overwritten. */
#define ROW(c0, c1, c2, c3, c4, c5, at0, at1, at2, at3)                                            \
    "ssub16 " c0 ", " c0 ", " c2 "\n\t"                                                            \
    "ssub16 r12, " c2 ", " c4 "\n\t"                                                               \
    "strd " c0 ", r12, [lr, #" #at0 "]\n\t"                                                        \
    "sadd16 " c0 ", " c1 ", " c2 "\n\t"                                                            \
    "sadd16 r12, " c3 ", " c4 "\n\t"                                                               \
    "strd " c0 ", r12, [lr, #" #at1 "]\n\t"                                                        \
    "ssub16 " c0 ", " c2 ", " c1 "\n\t"                                                            \
    "ssub16 r12, " c4 ", " c3 "\n\t"                                                               \
    "strd " c0 ", r12, [lr, #" #at2 "]\n\t"                                                        \
    "ssub16 " c0 ", " c1 ", " c3 "\n\t"                                                            \
    "ssub16 r12, " c3 ", " c5 "\n\t"                                                               \
    "strd " c0 ", r12, [lr, #" #at3 "]\n\t"
#define TWO_ROWS(t0, t1, t2, t3, t4, t5)                                                           \
    "ldrd r0, r1, [sp, #" #t0 "]\n\t"                                                              \
    "ldrd r2, r3, [sp, #" #t1 "]\n\t"                                                              \
    "ldrd r4, r5, [sp, #" #t2 "]\n\t"                                                              \
    "ldrd r6, r7, [sp, #" #t3 "]\n\t"                                                              \
    "ldrd r8, r9, [sp, #" #t4 "]\n\t"                                                              \
    "ldrd r10, r11, [sp, #" #t5 "]\n\t"
#define EVEN_ROW(at0, at1, at2, at3)                                                               \
    ROW("r0", "r2", "r4", "r6", "r8", "r10", at0, at1, at2, at3)
#define ODD_ROW(at0, at1, at2, at3) ROW("r1", "r3", "r5", "r7", "r9", "r11", at0, at1, at2, at3)

__asm__(FUNCTION(ferrule_winograd_input)
        "sub sp, sp, #220\n\t"
        "ldr r4, [sp, #256]\n\t" /* groups */
        "add r5, r1, r1, lsl #1\n\t"
        "add r4, r3, r4, lsl #8\n\t"
        "str r4, [sp, #212]\n\t" /* the end of v */
        "mov lr, r3\n\t"
        "mov r3, r2\n\t"
        "mov r2, r5\n\t"
        "strd r1, r2, [sp, #200]\n\t"
        "str r3, [sp, #208]\n"
        "0:\n\t"
        "str r0, [sp, #196]\n\t"
        "str lr, [sp, #216]\n\t"
        "mov r12, sp\n"
        "1:\n\t"
        "ldr r4, [r0]\n\t"
        "ldr r5, [r0, r1]\n\t"
        "ldr r6, [r0, r1, lsl #1]\n\t"
        "ldr r7, [r0, r2]\n\t"
        "add r0, r0, r3\n\t"
        COLUMN_HALF("")
        COLUMN_HALF(", ror #8")
        "add lr, sp, #192\n\t"
        "cmp r12, lr\n\t"
        "bne 1b\n\t"
        "ldr lr, [sp, #216]\n\t"
        /* Rows 0 and 1, then 3 and 2, of channels 0 and 2; then the same of channels 1 and 3. */
        TWO_ROWS(0, 32, 64, 96, 128, 160)
        EVEN_ROW(0, 16, 32, 48)
        ODD_ROW(64, 80, 96, 112)
        TWO_ROWS(8, 40, 72, 104, 136, 168)
        EVEN_ROW(192, 208, 224, 240)
        ODD_ROW(128, 144, 160, 176)
        TWO_ROWS(16, 48, 80, 112, 144, 176)
        EVEN_ROW(8, 24, 40, 56)
        ODD_ROW(72, 88, 104, 120)
        TWO_ROWS(24, 56, 88, 120, 152, 184)
        EVEN_ROW(200, 216, 232, 248)
        ODD_ROW(136, 152, 168, 184)
        "add lr, lr, #256\n\t"
        "ldrd r0, r1, [sp, #196]\n\t"
        "ldrd r2, r3, [sp, #204]\n\t"
        "add r0, r0, #4\n\t"
        "ldr r12, [sp, #212]\n\t"
        "cmp lr, r12\n\t"
        "bne 0b\n\t"
        "add sp, sp, #220\n\t"
        END(ferrule_winograd_input));

/* Nine words of four input channels are in r2 to r10, in the order of the pixels. */
#define WIDEN(reg, rotation) "sxtb16 " reg ", " reg rotation "\n\t"
#define WIDEN_TAPS(rotation)                                                                       \
    WIDEN("r2", rotation) WIDEN("r3", rotation) WIDEN("r4", rotation) WIDEN("r5", rotation)        \
    WIDEN("r6", rotation) WIDEN("r7", rotation) WIDEN("r8", rotation) WIDEN("r9", rotation)        \
    WIDEN("r10", rotation)
#define TAPS_ROW(g0, g1, g2, at0, at1, at2, at3)                                                   \
    "str " g0 ", [r1, #" #at0 "]\n\t"                                                              \
    "sadd16 r11, " g0 ", " g2 "\n\t"                                                               \
    "str " g2 ", [r1, #" #at3 "]\n\t"                                                              \
    "sadd16 r12, r11, " g1 "\n\t"                                                                  \
    "ssub16 r11, r11, " g1 "\n\t"                                                                  \
    "str r12, [r1, #" #at1 "]\n\t"                                                                 \
    "str r11, [r1, #" #at2 "]\n\t"
#define TAPS_COLUMN(g0, g1, g2)                                                                    \
    "sadd16 " g0 ", " g0 ", " g2 "\n\t"                                                            \
    "ssub16 " g2 ", " g0 ", " g1 "\n\t"                                                            \
    "sadd16 " g1 ", " g0 ", " g1 "\n\t"
#define TAPS_COLUMNS                                                                               \
    TAPS_COLUMN("r2", "r5", "r8") TAPS_COLUMN("r3", "r6", "r9") TAPS_COLUMN("r4", "r7", "r10")

__asm__(FUNCTION(ferrule_winograd_weights)
        "mov lr, r2\n"
        "0:\n\t"
        "ldm r0, {r2-r10}\n\t"
        WIDEN_TAPS("")
        TAPS_ROW("r2", "r3", "r4", 0, 128, 256, 384)
        TAPS_ROW("r8", "r9", "r10", 1536, 1664, 1792, 1920)
        TAPS_COLUMNS
        TAPS_ROW("r5", "r6", "r7", 512, 640, 768, 896)
        TAPS_ROW("r8", "r9", "r10", 1024, 1152, 1280, 1408)
        "ldm r0!, {r2-r10}\n\t"
        WIDEN_TAPS(", ror #8")
        TAPS_ROW("r2", "r3", "r4", 16, 144, 272, 400)
        TAPS_ROW("r8", "r9", "r10", 1552, 1680, 1808, 1936)
        TAPS_COLUMNS
        TAPS_ROW("r5", "r6", "r7", 528, 656, 784, 912)
        TAPS_ROW("r8", "r9", "r10", 1040, 1168, 1296, 1424)
        "add r1, r1, #4\n\t"
        "tst r1, #12\n\t"
        "it eq\n\t"
        "addeq r1, r1, #16\n\t"
        "cmp r0, lr\n\t"
        "bne 0b\n\t"
        END(ferrule_winograd_weights));
#undef STEP
#undef ADD_STEP
#undef FIRST_STEP
#undef PROVED
#undef PROVED_CHANNELS
#undef EXACT
#undef EXACT_CHANNELS
#undef FUNCTION
#undef END
#undef COLUMN_HALF
#undef ROW
#undef TWO_ROWS
#undef EVEN_ROW
#undef ODD_ROW
#undef WIDEN
#undef WIDEN_TAPS
#undef TAPS_ROW
#undef TAPS_COLUMN
#undef TAPS_COLUMNS
/* clang-format on */
#else
static inline uint32_t ferrule_winograd_add(uint32_t a, uint32_t b)
{
    return ferrule_pair((int16_t)a + (int16_t)b, (int16_t)(a >> 16) + (int16_t)(b >> 16));
}

static inline uint32_t ferrule_winograd_subtract(uint32_t a, uint32_t b)
{
    return ferrule_pair((int16_t)a - (int16_t)b, (int16_t)(a >> 16) - (int16_t)(b >> 16));
}

/* Four values, `step` words apart, become d0 - d2, d1 + d2, d2 - d1 and d1 - d3. */
static inline void ferrule_winograd_four(const uint32_t *values, int32_t step, uint32_t *target,
                                         int32_t target_step)
{
    uint32_t d1 = values[step];
    uint32_t d2 = values[2 * step];

    target[0] = ferrule_winograd_subtract(values[0], d2);
    target[target_step] = ferrule_winograd_add(d1, d2);
    target[2 * target_step] = ferrule_winograd_subtract(d2, d1);
    target[3 * target_step] = ferrule_winograd_subtract(d1, values[3 * step]);
}

static inline void ferrule_winograd_input(const int8_t *pixels, int32_t row_bytes,
                                          int32_t pixel_bytes, uint32_t *v, int32_t groups)
{
    for (int32_t g = 0; g < groups; ++g) {
        for (int32_t half = 0; half < 2; ++half) {
            uint32_t down[FERRULE_WINOGRAD_ROWS][FERRULE_WINOGRAD_COLUMNS];

            for (int32_t j = 0; j < FERRULE_WINOGRAD_COLUMNS; ++j) {
                uint32_t column[FERRULE_WINOGRAD_ROWS];

                for (int32_t i = 0; i < FERRULE_WINOGRAD_ROWS; ++i) {
                    uint32_t word = ferrule_load_word(pixels + i * row_bytes + j * pixel_bytes);

                    column[i] = half == 0 ? ferrule_even_bytes(word) : ferrule_odd_bytes(word);
                }
                ferrule_winograd_four(column, 1, &down[0][j], FERRULE_WINOGRAD_COLUMNS);
            }
            for (int32_t i = 0; i < FERRULE_WINOGRAD_ROWS; ++i) {
                ferrule_winograd_four(&down[i][0], 1, v + 16 * i + 2 * half, 4);
                ferrule_winograd_four(&down[i][2], 1, v + 16 * i + 2 * half + 1, 4);
            }
        }
        pixels += 4;
        v += FERRULE_WINOGRAD_V_WORDS;
    }
}

/* One row or column of the output transform: 2 * m0 + m1 + m2 or m1 - m2 - 2 * m3. */
static inline uint32_t ferrule_winograd_combine(const uint32_t *m, int32_t step, int32_t which)
{
    return which == 0 ? 2u * m[0] + m[step] + m[2 * step]
                      : m[step] - m[2 * step] - 2u * m[3 * step];
}

static inline void ferrule_winograd_store(const struct ferrule_winograd_tiles *tiles,
                                          const uint32_t *sums, const int32_t *channel,
                                          int8_t *target, int32_t column_step)
{
    /* Pixels outside have the address of one inside, which is stored after them. */
    for (int32_t i = FERRULE_WINOGRAD_TILE - 1; i >= 0; --i) {
        for (int32_t j = FERRULE_WINOGRAD_TILE - 1; j >= 0; --j) {
            for (int32_t c = 0; c < FERRULE_WINOGRAD_BLOCK; ++c) {
                const int32_t *words =
                    channel + c * tiles->block_channel_words / FERRULE_WINOGRAD_BLOCK;
                uint32_t columns[FERRULE_WINOGRAD_ROWS];

                for (int32_t k = 0; k < FERRULE_WINOGRAD_ROWS; ++k) {
                    columns[k] = ferrule_winograd_combine(sums + 8 * k + c, 32, i);
                }
                uint32_t sum4 = ferrule_winograd_combine(columns, 1, j);
                bool proved = tiles->block_channel_words ==
                              FERRULE_WINOGRAD_PROVED_WORDS * FERRULE_WINOGRAD_BLOCK;
                target[i * tiles->row_step + j * column_step + c] =
                    proved ? ferrule_proved_s8((sum4 << 6) + (uint32_t)words[1], words[0])
                           : ferrule_exact_s8((uint32_t)((int32_t)sum4 >> 1), words);
            }
        }
    }
}

static inline void ferrule_winograd_tiles(const struct ferrule_winograd_tiles *tiles)
{
    const int32_t *u = tiles->u;
    const int32_t *channel = tiles->channels;
    uint32_t *sums = (uint32_t *)tiles->sums;
    int32_t groups = tiles->v_bytes / (4 * FERRULE_WINOGRAD_V_WORDS);

    for (int32_t block = 0; block < tiles->blocks; ++block) {
        int32_t done = block * FERRULE_WINOGRAD_BLOCK;

        if (tiles->added_end == NULL) {
            (void)memset(sums, 0, FERRULE_WINOGRAD_SUM_WORDS * sizeof *sums);
        }
        for (int32_t p = 0; p < FERRULE_WINOGRAD_POSITIONS; ++p) {
            uint32_t *target = sums + 2 * FERRULE_WINOGRAD_BLOCK * p;

            for (int32_t step = 0; step < 2 * groups; ++step) {
                const uint32_t *v =
                    tiles->v + step / 2 * FERRULE_WINOGRAD_V_WORDS + 4 * p + 2 * (step % 2);

                for (int32_t c = 0; c < FERRULE_WINOGRAD_BLOCK; ++c) {
                    uint32_t weight = (uint32_t)*u++;

                    target[c] = ferrule_dual_multiply_add(v[0], weight, target[c]);
                    target[c + FERRULE_WINOGRAD_BLOCK] =
                        ferrule_dual_multiply_add(v[1], weight, target[c + FERRULE_WINOGRAD_BLOCK]);
                }
            }
        }
        if (tiles->finish != 0) {
            ferrule_winograd_store(tiles, sums + FERRULE_WINOGRAD_BLOCK, channel,
                                   tiles->second + done, tiles->second_step);
            ferrule_winograd_store(tiles, sums, channel, tiles->first + done, tiles->first_step);
        }
        channel += tiles->block_channel_words;
    }
}

/* One direction of U, of two input channels: g0, g0 + g1 + g2, g0 - g1 + g2 and g2. */
static inline void ferrule_winograd_taps(uint32_t g0, uint32_t g1, uint32_t g2, uint32_t *target)
{
    uint32_t outer = ferrule_winograd_add(g0, g2);

    target[0] = g0;
    target[1] = ferrule_winograd_add(outer, g1);
    target[2] = ferrule_winograd_subtract(outer, g1);
    target[3] = g2;
}

/* Compute U of one output channel and two input channels from the pixels of the window. */
static inline void ferrule_winograd_window(const uint32_t *taps, int32_t *u)
{
    uint32_t down[3][FERRULE_WINOGRAD_ROWS];
    uint32_t across[FERRULE_WINOGRAD_ROWS];

    for (int32_t j = 0; j < 3; ++j) {
        ferrule_winograd_taps(taps[j], taps[3 + j], taps[6 + j], down[j]);
    }
    for (int32_t i = 0; i < FERRULE_WINOGRAD_ROWS; ++i) {
        ferrule_winograd_taps(down[0][i], down[1][i], down[2][i], across);
        for (int32_t j = 0; j < FERRULE_WINOGRAD_ROWS; ++j) {
            u[(4 * i + j) * FERRULE_WINOGRAD_CHUNK_POSITION_WORDS] = (int32_t)across[j];
        }
    }
}

static inline void ferrule_winograd_weights(const int32_t *weights, int32_t *u,
                                            const int32_t *weights_end)
{
    int32_t channel = 0;

    for (; weights != weights_end; weights += FERRULE_WINOGRAD_TAPS) {
        for (int32_t half = 0; half < 2; ++half) {
            uint32_t taps[FERRULE_WINOGRAD_TAPS];

            for (int32_t k = 0; k < FERRULE_WINOGRAD_TAPS; ++k) {
                uint32_t word = (uint32_t)weights[k];

                taps[k] = half == 0 ? ferrule_even_bytes(word) : ferrule_odd_bytes(word);
            }
            ferrule_winograd_window(
                taps, u + half * FERRULE_WINOGRAD_BLOCK + channel % FERRULE_WINOGRAD_BLOCK +
                          channel / FERRULE_WINOGRAD_BLOCK * 2 * FERRULE_WINOGRAD_BLOCK);
        }
        channel += 1;
    }
}
#endif

#endif
