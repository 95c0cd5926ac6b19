/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual_s16.h"

#if FERRULE_HAS_DSP

_Static_assert(offsetof(struct ferrule_dual_depthwise, skipped) == 16, "used in the assembler");
_Static_assert(offsetof(struct ferrule_dual_depthwise, channels) == 32, "used in the assembler");
_Static_assert(offsetof(struct ferrule_dual_depthwise, clipped) == 64, "used in the assembler");

/* Two channels of both pixels: sums of the first pixel in r0 and r1, of the second one in r2 and
 * r3. */
#define TAP                                                                                        \
    "ldr r9, [r4, r7]\n\t"                                                                         \
    "smlabb r2, r9, r11, r2\n\t"                                                                   \
    "smlatt r3, r9, r11, r3\n\t"                                                                   \
    "ldr r9, [r4]\n\t"                                                                             \
    "smlabb r0, r9, r11, r0\n\t"                                                                   \
    "smlatt r1, r9, r11, r1\n\t"

/* The place in r0, as what follows where r0 is not that of the columns before. */
#define FOLLOWING(flag, place)                                                                     \
    "cmp " flag ", #0\n\t"                                                                         \
    "it ne\n\t"                                                                                    \
    "adrne.w r0, " place "\n\t"                                                                    \
    "orr r0, r0, #1\n\t"

/* A tap in r4, a row of taps in r5, weights in r6, column pairs left in r12, rows left in lr. The
 * frame: the argument; the places of the first columns, of those after `lead` and after the pairs
 * at 68, 72 and 76; the output, the data, the stream and the channels left at 80, 84, 88 and 92. */
__attribute__((naked, noinline, aligned(4))) void
ferrule_dual_depthwise_s16(const struct ferrule_dual_depthwise *run __attribute__((unused)))
{
    __asm__(
        "push {r4-r11, lr}\n\t"
        "sub sp, sp, #100\n\t"
        "mov r12, sp\n\t"
        "ldm r0!, {r1-r8}\n\t"
        "stm r12!, {r1-r8}\n\t"
        "ldm r0!, {r1-r9}\n\t"
        "stm r12!, {r1-r9}\n\t"
        "adr.w r0, 7f\n\t" FOLLOWING("r8", "6f") "str r0, [sp, #76]\n\t" FOLLOWING(
            "r3",
            "5f") "str r0, [sp, #72]\n\t" FOLLOWING("r7",
                                                    "4f") "str r0, [sp, #68]\n\t"
                                                          "1:\n\t" /* two pixels */
                                                          "ldr r5, [sp]\n\t"
                                                          "ldrd r4, r7, [sp, #24]\n\t"
                                                          "ldr r10, [sp, #32]\n\t"
                                                          "ldr r6, [sp, #20]\n\t"
                                                          "ldrd r7, r8, [sp, #4]\n\t"
                                                          "strd r4, r5, [sp, #80]\n\t"
                                                          "strd r6, r10, [sp, #88]\n\t"
                                                          "2:\n\t" /* two channels */
                                                          "ldr r9, [sp, #44]\n\t"
                                                          "ldr lr, [sp, #36]\n\t"
                                                          "ldrd r0, r1, [r6]\n\t"
                                                          "add r6, r6, r9\n\t"
                                                          "mov r2, r0\n\t"
                                                          "mov r3, r1\n\t"
                                                          "cmp lr, #0\n\t"
                                                          "beq 8f\n\t"
                                                          "3:\n\t" /* a row of taps */
                                                          "mov r4, r5\n\t"
                                                          "ldr pc, [sp, #68]\n\t"
                                                          ".balign 4\n\t"
                                                          "4:\n\t"
                                                          "ldr r10, [r6], #4\n\t"
                                                          "sxtb16 r11, r10, ror #8\n\t" TAP
                                                          "add r4, r4, r8\n\t"
                                                          "ldr pc, [sp, #72]\n\t"
                                                          ".balign 4\n\t"
                                                          "5:\n\t"
                                                          "ldr r12, [sp, #40]\n\t"
                                                          "9:\n\t"
                                                          "ldr r10, [r6], #4\n\t"
                                                          "sxtb16 r11, r10\n\t" TAP
                                                          "add r4, r4, r8\n\t"
                                                          "sxtb16 r11, r10, ror #8\n\t" TAP
                                                          "add r4, r4, r8\n\t"
                                                          "subs r12, r12, #1\n\t"
                                                          "bne 9b\n\t"
                                                          "ldr pc, [sp, #76]\n\t"
                                                          ".balign 4\n\t"
                                                          "6:\n\t"
                                                          "ldr r10, [r6], #4\n\t"
                                                          "sxtb16 r11, r10\n\t" TAP ".balign 4\n\t"
                                                          "7:\n\t"
                                                          "ldrd r9, r10, [sp, #12]\n\t"
                                                          "add r5, r5, r9\n\t"
                                                          "add r6, r6, r10\n\t"
                                                          "subs lr, lr, #1\n\t"
                                                          "bne 3b\n\t"
                                                          "8:\n\t"
                                                          "ldr r6, [sp, #88]\n\t"
                                                          "ldr r9, [sp, #48]\n\t"
                                                          "add r6, r6, r9\n\t"
                                                          "ldrd r10, r11, [r6], #8\n\t"
                                                          "smmulr r0, r0, r10\n\t"
                                                          "smmulr r1, r1, r11\n\t"
                                                          "smmulr r2, r2, r10\n\t"
                                                          "smmulr r3, r3, r11\n\t"
                                                          "ssat r0, #16, r0\n\t"
                                                          "ssat r1, #16, r1\n\t"
                                                          "ssat r2, #16, r2\n\t"
                                                          "ssat r3, #16, r3\n\t"
                                                          "pkhbt r0, r0, r1, lsl #16\n\t"
                                                          "pkhbt r2, r2, r3, lsl #16\n\t"
                                                          "ldr r1, [sp, #64]\n\t"
                                                          "cbz r1, 10f\n\t"
                                                          "usat16 r0, #15, r0\n\t"
                                                          "usat16 r2, #15, r2\n\t"
                                                          "10:\n\t"
                                                          "ldrd r4, r5, [sp, #80]\n\t"
                                                          "ldr r9, [sp, #28]\n\t"
                                                          "ldr r10, [sp, #92]\n\t"
                                                          "str r2, [r4, r9]\n\t"
                                                          "str r0, [r4], #4\n\t"
                                                          "add r5, r5, #4\n\t"
                                                          "subs r10, r10, #2\n\t"
                                                          "ble 11f\n\t"
                                                          "cmp r10, #1\n\t"
                                                          "itt eq\n\t" /* the last pair ends with
                                                                          the last channel */
                                                          "subeq r4, r4, #2\n\t"
                                                          "subeq r5, r5, #2\n\t"
                                                          "strd r4, r5, [sp, #80]\n\t"
                                                          "strd r6, r10, [sp, #88]\n\t"
                                                          "b.w 2b\n\t"
                                                          "11:\n\t"
                                                          "ldr r0, [sp]\n\t"
                                                          "ldr r1, [sp, #4]\n\t"
                                                          "ldr r2, [sp, #24]\n\t"
                                                          "ldr r3, [sp, #52]\n\t"
                                                          "add r0, r0, r1, lsl #1\n\t"
                                                          "add r2, r2, r9, lsl #1\n\t"
                                                          "subs r3, r3, #1\n\t"
                                                          "str r0, [sp]\n\t"
                                                          "str r2, [sp, #24]\n\t"
                                                          "str r3, [sp, #52]\n\t"
                                                          "bne.w 1b\n\t"
                                                          "add sp, sp, #100\n\t"
                                                          "pop {r4-r11, pc}\n\t");
}

#else

/* A channel of a pair for one pixel; `data` is under its first tap. */
static int16_t result_of(const struct ferrule_dual_depthwise *run, const int32_t *bias,
                         int32_t channel, const int16_t *data)
{
    int32_t sum = bias[channel];
    int32_t columns = run->lead + 2 * run->pairs + run->tail;
    int32_t offset = run->first_weight;
    int32_t floor = run->clipped != 0 ? -1 : 0;

    for (int32_t i = 0; i < run->rows; ++i) {
        for (int32_t j = 0; j < columns; ++j) {
            int32_t place = j + run->lead;
            uint32_t word = (uint32_t)bias[offset / 4 + place / 2];

            sum += data[(i * run->row_bytes + j * run->column_bytes) / 2] *
                   (int8_t)(word >> (16 * channel + 8 * (place % 2)));
        }
        offset += 4 * (run->lead + run->pairs + run->tail) + run->skipped;
    }
    sum = ferrule_saturate_s16(ferrule_high_product(sum, bias[run->scales / 4 + channel]));
    return (int16_t)(sum & (sum < 0 ? ~floor : -1));
}

void ferrule_dual_depthwise_s16(const struct ferrule_dual_depthwise *run)
{
    for (int32_t i = 0; i < run->count; ++i) {
        const int32_t *stream = run->stream;
        const int16_t *data = run->data + i * run->next_bytes;
        int16_t *output = run->output + i * run->output_next;

        for (int32_t c = 0; c < run->channels; c += 2) {
            int32_t first = c < run->channels - 2 ? c : run->channels - 2;
            int16_t results[4];

            for (int32_t k = 0; k < 4; ++k) {
                results[k] = result_of(run, stream, k % 2,
                                       data + k / 2 * (run->next_bytes / 2) + first + k % 2);
            }
            for (int32_t k = 3; k >= 0; --k) {
                output[k / 2 * (run->output_next / 2) + first + k % 2] = results[k];
            }
            stream += run->scales / 4 + 2;
        }
    }
}

#endif
