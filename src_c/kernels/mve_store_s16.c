/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/mve_pixels_s16.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_pairs_s16, rows) == 8, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pairs_s16, output) == 16, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pairs_s16, first) == 28, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_pairs_s16, high) == 44, "used in the assembler below");

/* 8 products of four channels and two pixels: 14 instructions of 4 bytes. VMLADAVA adds to the
 * even core registers, so the odd ones hold the addresses. */
#define STEP                                                                                       \
    "vldrh.u16 q4, [r9], #16\n\t"                                                                  \
    "vldrb.s16 q0, [r5], #8\n\t"                                                                   \
    "vmladava.s16 r0, q0, q4\n\t"                                                                  \
    "vldrh.u16 q5, [r11], #16\n\t"                                                                 \
    "vmladava.s16 r8, q0, q5\n\t"                                                                  \
    "vldrb.s16 q1, [r5], #8\n\t"                                                                   \
    "vmladava.s16 r2, q1, q4\n\t"                                                                  \
    "vmladava.s16 r10, q1, q5\n\t"                                                                 \
    "vldrb.s16 q2, [r5], #8\n\t"                                                                   \
    "vmladava.s16 r4, q2, q4\n\t"                                                                  \
    "vmladava.s16 r12, q2, q5\n\t"                                                                 \
    "vldrb.s16 q3, [r5], #8\n\t"                                                                   \
    "vmladava.s16 r6, q3, q4\n\t"                                                                  \
    "vmladava.s16 lr, q3, q5\n\t"

/*
 * The frame: rows of the pair, address at which the products begin (so that the first pass has 1
 * to 8 steps), channels left, pairs left, the argument, output of the pair, how sums are rounded.
 */
__attribute__((naked, aligned(4))) void
ferrule_mve_store_pairs_s16(__attribute__((unused)) const struct ferrule_mve_pairs_s16 *pairs)
{
    __asm__("push {r4-r11, lr}\n\t"
            "vpush {d8-d15}\n\t"
            "sub sp, #44\n\t"
            "str r0, [sp, #20]\n\t"
            "ldrd r4, r2, [r0, #36]\n\t" /* sums, limits */
            "ldr r3, [r0, #44]\n\t"
            "str r4, [sp, #28]\n\t"
            "vdup.32 q6, r2\n\t"
            "vdup.32 q7, r3\n\t"
            "ldr r2, [r0, #28]\n\t"
            "rsb r2, r2, #8\n\t"
            "movs r3, #56\n\t"
            "adr.w r6, 3f\n\t"
            "mla r2, r2, r3, r6\n\t"
            "orr r2, r2, #1\n\t"
            "str r2, [sp, #8]\n\t"
            "ldr r3, [r0, #24]\n\t"
            "str r3, [sp, #16]\n\t"
            "ldrd r9, r2, [r0, #8]\n\t"
            "add r11, r9, r2\n\t"
            "strd r9, r11, [sp]\n\t"
            "ldrd r1, r2, [r0, #16]\n\t"
            "1:\n\t" /* a pair of pixels */
            "str r1, [sp, #24]\n\t"
            "add r3, r1, r2\n\t"
            "ldrd r5, r4, [r0]\n\t"
            "str r4, [sp, #12]\n\t"
            "ldr r2, [r0, #32]\n\t"
            "ldr r9, [sp]\n\t"
            "add r7, r9, r2\n\t"
            "2:\n\t" /* a block of channels */
            "ldrd r9, r11, [sp]\n\t"
            "ldm r5, {r0, r2, r4, r6}\n\t"
            "ldm r5!, {r8, r10, r12, lr}\n\t"
            "ldr pc, [sp, #8]\n\t"
            ".balign 4\n\t"
            "3:\n\t" /* eight times 8 products */
            STEP STEP STEP STEP STEP STEP STEP STEP "cmp r9, r7\n\t"
            "bne.w 3b\n\t"
            "vmov q2[2], q2[0], r0, r4\n\t"
            "vmov q2[3], q2[1], r2, r6\n\t"
            "vmov q3[2], q3[0], r8, r12\n\t"
            "vmov q3[3], q3[1], r10, lr\n\t"
            "vldrw.u32 q0, [r5], #16\n\t"
            "ldr r0, [sp, #28]\n\t"
            "ldr r2, [sp, #12]\n\t" FERRULE_MVE_HIGH("q2", "q0") FERRULE_MVE_HIGH(
                "q3", "q0") "cbz r0, 4f\n\t"
                            "vldrw.u32 q1, [r5], #16\n\t" FERRULE_MVE_BELOW("q2", "q4")
                                FERRULE_MVE_BELOW("q3", "q5") FERRULE_MVE_SHIFT("q2", "q1")
                                    FERRULE_MVE_SHIFT("q3", "q1") "4:\n\t"
                                                                  "vctp.32 r2\n\t"
                                                                  "vmax.s32 q2, q2, q6\n\t"
                                                                  "vmax.s32 q3, q3, q6\n\t"
                                                                  "vmin.s32 q2, q2, q7\n\t"
                                                                  "vmin.s32 q3, q3, q7\n\t"
                                                                  "vpstt\n\t"
                                                                  "vstrht.32 q2, [r1], #8\n\t"
                                                                  "vstrht.32 q3, [r3], #8\n\t"
                                                                  "subs r2, #4\n\t"
                                                                  "str r2, [sp, #12]\n\t"
                                                                  "bgt.w 2b\n\t"
                                                                  "ldr r0, [sp, #20]\n\t"
                                                                  "ldr r2, [r0, #12]\n\t"
                                                                  "ldr r4, [sp]\n\t"
                                                                  "add r4, r4, r2, lsl #1\n\t"
                                                                  "add r6, r4, r2\n\t"
                                                                  "strd r4, r6, [sp]\n\t"
                                                                  "ldr r2, [r0, #20]\n\t"
                                                                  "ldr r1, [sp, #24]\n\t"
                                                                  "add r1, r1, r2, lsl #1\n\t"
                                                                  "ldr r4, [sp, #16]\n\t"
                                                                  "subs r4, #1\n\t"
                                                                  "str r4, [sp, #16]\n\t"
                                                                  "bne.w 1b\n\t"
                                                                  "add sp, #44\n\t"
                                                                  "vpop {d8-d15}\n\t"
                                                                  "pop {r4-r11, pc}\n\t");
}

/* The sums of four channels for one pixel; returns the address behind the weights. */
__attribute__((naked, aligned(4))) const int32_t *ferrule_mve_sum_wide_s16(
    __attribute__((unused)) const int32_t *stream, __attribute__((unused)) const int16_t *row,
    __attribute__((unused)) int32_t products, __attribute__((unused)) int64_t *sums)
{
    /* VLDRB.S16 has its address in one of r0 to r7. */
    __asm__("push {r4-r11, lr}\n\t"
            "mov r6, r0\n\t"
            "mov r7, r1\n\t"
            "mov r12, r3\n\t"
            "dlstp.16 lr, r2\n\t"
            "ldm r6!, {r2-r5, r8-r11}\n\t"
            "1:\n\t"
            "vldrh.u16 q0, [r7], #16\n\t"
            "vldrb.s16 q1, [r6], #8\n\t"
            "vmlaldava.s16 r2, r3, q0, q1\n\t"
            "vldrb.s16 q2, [r6], #8\n\t"
            "vmlaldava.s16 r4, r5, q0, q2\n\t"
            "vldrb.s16 q1, [r6], #8\n\t"
            "vmlaldava.s16 r8, r9, q0, q1\n\t"
            "vldrb.s16 q2, [r6], #8\n\t"
            "vmlaldava.s16 r10, r11, q0, q2\n\t"
            "letp lr, 1b\n\t"
            "stm r12, {r2-r5, r8-r11}\n\t"
            "mov r0, r6\n\t"
            "pop {r4-r11, pc}\n\t");
}

#else

/* The weight of a channel of a block. */
static int32_t weight_of(const int32_t *weights, int32_t channel, int32_t product)
{
    int32_t vector = FERRULE_MVE_LANES * (product / FERRULE_MVE_HALVES) + channel;

    return ferrule_mve_byte(weights, vector * FERRULE_MVE_HALVES + product % FERRULE_MVE_HALVES);
}

/* The block at `stream`, for one pixel; returns the next block. */
static const int32_t *store_block(const struct ferrule_mve_pairs_s16 *pairs, const int32_t *stream,
                                  const int8_t *row, int16_t *output, int32_t channels)
{
    int32_t products = pairs->data_bytes / 2;
    const int32_t *weights = stream + FERRULE_MVE_LANES;
    const int32_t *multipliers = weights + products;
    const int32_t *shifts = multipliers + FERRULE_MVE_LANES;
    bool twice = pairs->sums == FERRULE_MVE_TWICE;

    for (int32_t c = 0; c < channels; ++c) {
        int32_t sum = stream[c];

        for (int32_t k = 0; k < products; ++k) {
            int16_t element;

            (void)memcpy(&element, row + 2 * k, sizeof element);
            sum += element * weight_of(weights, c, k);
        }
        sum = twice ? ferrule_requantize(sum, multipliers[c], shifts[c])
                    : ferrule_high_multiply(sum, multipliers[c]);
        output[c] = (int16_t)ferrule_clamp(sum, pairs->low, pairs->high);
    }
    return twice ? shifts + FERRULE_MVE_LANES : shifts;
}

void ferrule_mve_store_pairs_s16(const struct ferrule_mve_pairs_s16 *pairs)
{
    for (int32_t i = 0; i < 2 * pairs->pairs; ++i) {
        const int32_t *stream = pairs->stream;

        for (int32_t c = 0; c < pairs->output_c; c += FERRULE_MVE_LANES) {
            int32_t left = pairs->output_c - c;

            stream = store_block(pairs, stream, pairs->rows + i * pairs->row_bytes,
                                 pairs->output + i * (pairs->pixel_bytes / 2) + c,
                                 left < FERRULE_MVE_LANES ? left : FERRULE_MVE_LANES);
        }
    }
}

const int32_t *ferrule_mve_sum_wide_s16(const int32_t *stream, const int16_t *row, int32_t products,
                                        int64_t *sums)
{
    const int32_t *weights = stream + 2 * FERRULE_MVE_LANES;
    int32_t vectors = (products + FERRULE_MVE_HALVES - 1) / FERRULE_MVE_HALVES;

    for (int32_t c = 0; c < FERRULE_MVE_LANES; ++c) {
        sums[c] = (int64_t)((uint64_t)(uint32_t)stream[2 * c] |
                            ((uint64_t)(uint32_t)stream[2 * c + 1] << 32));
        for (int32_t k = 0; k < products; ++k) {
            sums[c] += row[k] * weight_of(weights, c, k);
        }
    }
    return weights + FERRULE_MVE_HALVES * vectors;
}

#endif
