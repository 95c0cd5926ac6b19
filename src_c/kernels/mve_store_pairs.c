/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/mve_pixels.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_pixels, rows) == 8, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pixels, output) == 16, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pixels, first) == 28, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pixels, high) == 48, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pixels, terms) == 52, "used in the assembler below");

/* 16 products of four channels and two pixels: 14 instructions of 4 bytes. VMLADAVA adds to the
 * even core registers, so the odd ones hold the addresses. */
#define STEP                                                                                       \
    "vldrb.u8 q4, [r9], #16\n\t"                                                                   \
    "vldrb.u8 q0, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r0, q0, q4\n\t"                                                                   \
    "vldrb.u8 q5, [r11], #16\n\t"                                                                  \
    "vmladava.s8 r8, q0, q5\n\t"                                                                   \
    "vldrb.u8 q1, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r2, q1, q4\n\t"                                                                   \
    "vmladava.s8 r10, q1, q5\n\t"                                                                  \
    "vldrb.u8 q2, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r4, q2, q4\n\t"                                                                   \
    "vmladava.s8 r12, q2, q5\n\t"                                                                  \
    "vldrb.u8 q3, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r6, q3, q4\n\t"                                                                   \
    "vmladava.s8 lr, q3, q5\n\t"

/* Scale q2 and q3, then join them as halfwords: those of q3 above those of q2. */
#define JOIN_PLAIN                                                                                 \
    FERRULE_MVE_HIGH("q2", "q0")                                                                   \
    FERRULE_MVE_HIGH("q3", "q0")                                                                   \
    FERRULE_MVE_SHIFT("q2", "q1")                                                                  \
    FERRULE_MVE_SHIFT("q3", "q1")                                                                  \
    "vqmovnb.s32 q2, q2\n\t"                                                                       \
    "vqmovnt.s32 q2, q3\n\t"                                                                       \
    "vqadd.s16 q2, q2, q6\n\t"                                                                     \
    "vqmovnb.s16 q2, q2\n\t"                                                                       \
    "vshr.u32 q3, q2, #16\n\t"

#define JOIN_GENERAL                                                                               \
    FERRULE_MVE_HIGH("q2", "q0")                                                                   \
    FERRULE_MVE_HIGH("q3", "q0")                                                                   \
    FERRULE_MVE_BELOW("q2", "q4")                                                                  \
    FERRULE_MVE_BELOW("q3", "q5")                                                                  \
    "ldr r0, [sp, #28]\n\t" FERRULE_MVE_SHIFT("q2", "q1")                                          \
        FERRULE_MVE_SHIFT("q3", "q1") "vqmovnb.s32 q2, q2\n\t"                                     \
                                      "vqmovnt.s32 q2, q3\n\t"                                     \
                                      "vqadd.s16 q2, q2, r0\n\t"                                   \
                                      "vmax.s16 q2, q2, q6\n\t"                                    \
                                      "vmin.s16 q2, q2, q7\n\t"                                    \
                                      "vshr.u32 q3, q2, #16\n\t"

#define STORE_NEXT                                                                                 \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "vstrb.32 q2, [r1], #4\n\t"                                                                    \
    "vstrb.32 q3, [r3], #4\n\t"                                                                    \
    "cmp r5, r0\n\t"                                                                               \
    "bne.w 2b\n\t"

#define STORE_LISTED                                                                               \
    "vldrh.u32 q4, [r5], #8\n\t"                                                                   \
    "ldr r0, [sp, #16]\n\t"                                                                        \
    "vstrb.32 q2, [r1, q4]\n\t"                                                                    \
    "vstrb.32 q3, [r3, q4]\n\t"                                                                    \
    "cmp r5, r0\n\t"                                                                               \
    "bne.w 2b\n\t"

/* Add what the rows of the pair add to their sums. The terms are found from their end, since the
 * pairs are counted down. */
#define ADD_TERMS                                                                                  \
    "ldrd r2, r0, [sp, #36]\n\t"                                                                   \
    "ldr r4, [sp, #20]\n\t"                                                                        \
    "sub r0, r0, r4, lsl #3\n\t"                                                                   \
    "ldrd r4, r6, [r0]\n\t"                                                                        \
    "vadd.i32 q2, q2, r4\n\t"                                                                      \
    "vadd.i32 q3, q3, r6\n\t"                                                                      \
    "bx r2\n\t"

/*
 * The frame: rows of the pair, address at which the products begin (so that the first pass has
 * 1 to 8 steps), address of the code that stores a block, end of the stream, pairs left, the
 * argument, zero point, output of the pair; with terms, address of the code that stores a block
 * after these are added, end of the terms.
 */
__attribute__((naked, aligned(4))) void
ferrule_mve_store_pairs(__attribute__((unused)) const struct ferrule_mve_pixels *pixels)
{
    __asm__("push {r4-r11, lr}\n\t"
            "vpush {d8-d15}\n\t"
            "sub sp, #44\n\t"
            "str r0, [sp, #24]\n\t"
            "ldrd r4, r1, [r0, #36]\n\t" /* kind, zero point */
            "ldrd r2, r3, [r0, #44]\n\t" /* limits */
            "str r1, [sp, #28]\n\t"
            "tst r4, #1\n\t"
            "it eq\n\t"
            "moveq r2, r1\n\t"
            "vdup.16 q6, r2\n\t" /* plain: the zero point; otherwise the lower limit */
            "vdup.16 q7, r3\n\t"
            "adr.w r5, 10f\n\t"
            "cmp r4, #1\n\t"
            "it eq\n\t"
            "adreq.w r5, 11f\n\t"
            "cmp r4, #2\n\t"
            "it eq\n\t"
            "adreq.w r5, 12f\n\t"
            "cmp r4, #3\n\t"
            "it eq\n\t"
            "adreq.w r5, 13f\n\t"
            "orr r5, r5, #1\n\t"
            "ldr r2, [r0, #52]\n\t"
            "cbz r2, 15f\n\t"
            "ldr r3, [r0, #24]\n\t"
            "add r2, r2, r3, lsl #3\n\t"
            "strd r5, r2, [sp, #36]\n\t"
            "adr.w r5, 14f\n\t"
            "orr r5, r5, #1\n\t"
            "15:\n\t"
            "ldr r2, [r0, #28]\n\t"
            "rsb r2, r2, #8\n\t"
            "movs r3, #56\n\t"
            "adr.w r6, 3f\n\t"
            "mla r2, r2, r3, r6\n\t"
            "orr r2, r2, #1\n\t"
            "strd r2, r5, [sp, #8]\n\t"
            "ldr r2, [r0, #4]\n\t"
            "ldr r3, [r0, #24]\n\t"
            "strd r2, r3, [sp, #16]\n\t"
            "ldrd r9, r2, [r0, #8]\n\t"
            "add r11, r9, r2\n\t"
            "strd r9, r11, [sp]\n\t"
            "ldrd r1, r2, [r0, #16]\n\t"
            "str r1, [sp, #32]\n\t"
            "add r3, r1, r2\n\t"
            "1:\n\t" /* a pair of pixels */
            "ldr r5, [r0]\n\t"
            "ldr r2, [r0, #32]\n\t"
            "ldr r9, [sp]\n\t"
            "add r7, r9, r2\n\t"
            "2:\n\t" /* a block of channels */
            "ldrd r9, r11, [sp]\n\t"
            "ldm r5, {r0, r2, r4, r6}\n\t"
            "ldm r5!, {r8, r10, r12, lr}\n\t"
            "ldr pc, [sp, #8]\n\t"
            "3:\n\t" /* eight times 16 products */
            STEP STEP STEP STEP STEP STEP STEP STEP "cmp r9, r7\n\t"
            "bne.w 3b\n\t"
            "vmov q2[2], q2[0], r0, r4\n\t"
            "vmov q2[3], q2[1], r2, r6\n\t"
            "vmov q3[2], q3[0], r8, r12\n\t"
            "vmov q3[3], q3[1], r10, lr\n\t"
            "vldrw.u32 q0, [r5], #16\n\t"
            "vldrb.s32 q1, [r5], #4\n\t"
            "ldr pc, [sp, #12]\n\t"
            ".balign 4\n\t"
            "14:\n\t" ADD_TERMS ".balign 4\n\t"
            "11:\n\t" JOIN_GENERAL STORE_NEXT "b.w 4f\n\t"
            ".balign 4\n\t"
            "12:\n\t" JOIN_PLAIN STORE_LISTED "b.w 4f\n\t"
            ".balign 4\n\t"
            "13:\n\t" JOIN_GENERAL STORE_LISTED "b.w 4f\n\t"
            ".balign 4\n\t"
            "10:\n\t" JOIN_PLAIN STORE_NEXT "4:\n\t"
            "ldr r0, [sp, #24]\n\t"
            "ldr r2, [r0, #12]\n\t"
            "ldr r4, [sp]\n\t"
            "add r4, r4, r2, lsl #1\n\t"
            "add r6, r4, r2\n\t"
            "strd r4, r6, [sp]\n\t"
            "ldr r2, [r0, #20]\n\t"
            "ldr r1, [sp, #32]\n\t"
            "add r1, r1, r2, lsl #1\n\t"
            "add r3, r1, r2\n\t"
            "str r1, [sp, #32]\n\t"
            "ldr r2, [sp, #20]\n\t"
            "subs r2, #1\n\t"
            "str r2, [sp, #20]\n\t"
            "bne.w 1b\n\t"
            "add sp, #44\n\t"
            "vpop {d8-d15}\n\t"
            "pop {r4-r11, pc}\n\t");
}

#else

/* The block at `stream`, for one pixel; returns the next block. */
static const int32_t *store_block(const struct ferrule_mve_pixels *pixels, const int32_t *stream,
                                  const int8_t *row, int32_t term, int8_t *output, int32_t channel)
{
    const struct ferrule_output_s8 limits = {pixels->zero_point, pixels->low, pixels->high};
    const int32_t *weights = stream + FERRULE_MVE_LANES;
    const int32_t *multipliers = weights + pixels->data_bytes;
    const int32_t *shifts = multipliers + FERRULE_MVE_LANES;
    bool listed = (pixels->kind & FERRULE_MVE_LISTED) != 0;

    for (int32_t c = 0; c < FERRULE_MVE_LANES; ++c) {
        int32_t sum = stream[c] + term;
        uint32_t place = (uint32_t)(channel + c);

        for (int32_t k = 0; k < pixels->data_bytes; ++k) {
            int32_t vector = FERRULE_MVE_LANES * (k / FERRULE_MVE_BYTES) + c;

            sum += row[k] *
                   ferrule_mve_byte(weights, vector * FERRULE_MVE_BYTES + k % FERRULE_MVE_BYTES);
        }
        if (listed) {
            place = ((uint32_t)shifts[1 + c / 2] >> (16 * (c % 2))) & 0xffffu;
        }
        output[place] =
            ferrule_mve_store(sum, multipliers[c], ferrule_mve_byte(shifts, c), &limits);
    }
    return shifts + (listed ? 3 : 1);
}

void ferrule_mve_store_pairs(const struct ferrule_mve_pixels *pixels)
{
    for (int32_t i = 0; i < 2 * pixels->pairs; ++i) {
        const int32_t *stream = pixels->stream;
        int32_t term = pixels->terms != NULL ? pixels->terms[i] : 0;

        for (int32_t c = 0; stream != pixels->stream_end; c += FERRULE_MVE_LANES) {
            stream = store_block(pixels, stream, pixels->rows + i * pixels->row_bytes, term,
                                 pixels->output + i * pixels->pixel_bytes, c);
        }
    }
}

#endif
