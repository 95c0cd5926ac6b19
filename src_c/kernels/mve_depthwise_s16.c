/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_conv2d_mve_s16.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, rows) == 16, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, skipped) == 40, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_depthwise_s16, pixels) == 56, "used in the assembler");

/*
 * The argument in r0, the stream in r1, the taps of 8 channels in r2, a row of them in r3, a tap in
 * r4, weights in r5, steps in r6, r7 and r11, columns in r8, rows left in r9, the output in r10,
 * channels left in r12. The frame: pixels left, data and output of the pixel. `start` sets q0 and
 * q1, `load` and `tap` add q4 to them, `next` goes to the weights of the next row, `finish` turns
 * them into the results in q0. q6 and q7 are the limits.
 */
#define RUN(start, load, tap, next, finish, advance)                                               \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d15}\n\t"                                                                           \
    "sub sp, #12\n\t"                                                                              \
    "ldrd r1, r2, [r0, #48]\n\t"                                                                   \
    "vdup.16 q6, r1\n\t"                                                                           \
    "vdup.16 q7, r2\n\t"                                                                           \
    "ldr r3, [r0, #56]\n\t"                                                                        \
    "str r3, [sp]\n\t"                                                                             \
    "ldr r2, [r0]\n\t"                                                                             \
    "ldr r10, [r0, #8]\n\t"                                                                        \
    "ldrd r8, r7, [r0, #20]\n\t"                                                                   \
    "ldr r6, [r0, #28]\n\t"                                                                        \
    "ldr r11, [r0, #40]\n\t"                                                                       \
    "1:\n\t" /* a pixel */                                                                         \
    "strd r2, r10, [sp, #4]\n\t"                                                                   \
    "ldr r1, [r0, #4]\n\t"                                                                         \
    "ldr r12, [r0, #12]\n\t"                                                                       \
    "2:\n\t" start /* 8 channels */                                                                \
    "ldr r9, [r0, #16]\n\t"                                                                        \
    "vctp.16 r12\n\t"                                                                              \
    "mov r3, r2\n\t"                                                                               \
    "cmp r9, #0\n\t"                                                                               \
    "beq 5f\n\t"                                                                                   \
    "3:\n\t" /* a row of taps */                                                                   \
    "mov r4, r3\n\t"                                                                               \
    "dls lr, r8\n\t"                                                                               \
    "4:\n\t"                                                                                       \
    "vpst\n\t" load "add r4, r4, r6\n\t" tap "le lr, 4b\n\t"                                       \
    "add r3, r3, r7\n\t" next "subs r9, r9, #1\n\t"                                                \
    "bne 3b\n\t"                                                                                   \
    "5:\n\t" finish "vmax.s16 q0, q0, q6\n\t"                                                      \
    "vmin.s16 q0, q0, q7\n\t"                                                                      \
    "vpst\n\t"                                                                                     \
    "vstrht.16 q0, [r10], #16\n\t" advance "subs r12, r12, #8\n\t"                                 \
    "bgt 2b\n\t"                                                                                   \
    "ldrd r2, r10, [sp, #4]\n\t"                                                                   \
    "ldr r3, [r0, #32]\n\t"                                                                        \
    "ldr r4, [r0, #12]\n\t"                                                                        \
    "ldr r5, [sp]\n\t"                                                                             \
    "add r2, r2, r3\n\t"                                                                           \
    "add r10, r10, r4, lsl #1\n\t"                                                                 \
    "subs r5, #1\n\t"                                                                              \
    "str r5, [sp]\n\t"                                                                             \
    "bne 1b\n\t"                                                                                   \
    "add sp, #12\n\t"                                                                              \
    "vpop {d8-d15}\n\t"                                                                            \
    "pop {r4-r11, pc}\n\t"

#define LOAD    "vldrht.u16 q4, [r4]\n\t"
#define ADVANCE "add r2, r2, #16\n\t"

/* Sums of even channels in q0, of odd ones in q1. */
#define BIASES                                                                                     \
    "vldrw.u32 q0, [r1]\n\t"                                                                       \
    "vldrw.u32 q1, [r1, #16]\n\t"                                                                  \
    "ldr r5, [r0, #36]\n\t"                                                                        \
    "add r5, r5, r1\n\t"
#define MULTIPLY                                                                                   \
    "vldrb.s16 q5, [r5], #8\n\t"                                                                   \
    "vmullb.s16 q2, q4, q5\n\t"                                                                    \
    "vmullt.s16 q4, q4, q5\n\t"                                                                    \
    "vadd.i32 q0, q0, q2\n\t"                                                                      \
    "vadd.i32 q1, q1, q4\n\t"
#define SKIP "add r5, r5, r11\n\t"
#define JOIN(even, odd)                                                                            \
    "vqmovnb.s32 q0, " even "\n\t"                                                                 \
    "vqmovnt.s32 q0, " odd "\n\t"
#define SCALE                                                                                      \
    "ldr r3, [r0, #44]\n\t"                                                                        \
    "add r1, r1, r3\n\t"                                                                           \
    "vldrw.u32 q2, [r1], #16\n\t"                                                                  \
    "vldrw.u32 q4, [r1], #16\n\t" FERRULE_MVE_HIGH("q0", "q2") FERRULE_MVE_HIGH("q1", "q4")        \
        JOIN("q0", "q1")

__attribute__((naked)) void ferrule_mve_depthwise_s16(__attribute__((unused))
                                                      const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(RUN(BIASES, LOAD, MULTIPLY, SKIP, SCALE, ADVANCE));
}

__attribute__((naked)) void
ferrule_mve_depthwise_multiplied_s16(__attribute__((unused))
                                     const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(RUN("vldrh.u16 q3, [r1], #16\n\t" BIASES, "vldrht.u16 q4, [r4, q3, uxtw #1]\n\t",
                MULTIPLY, SKIP, SCALE, ""));
}

#define ZERO                                                                                       \
    "vmov.i32 q0, #0\n\t"                                                                          \
    "vmov.i32 q1, #0\n\t"
#define ADD                                                                                        \
    "vmovlb.s16 q2, q4\n\t"                                                                        \
    "vmovlt.s16 q4, q4\n\t"                                                                        \
    "vadd.i32 q0, q0, q2\n\t"                                                                      \
    "vadd.i32 q1, q1, q4\n\t"
#define DIVIDE                                                                                     \
    "vqrdmulh.s32 q0, q0, r11\n\t"                                                                 \
    "vqrdmulh.s32 q1, q1, r11\n\t" JOIN("q0", "q1")

__attribute__((naked)) void ferrule_mve_average_s16(__attribute__((unused))
                                                    const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(RUN(ZERO, LOAD, ADD, "", DIVIDE, ADVANCE));
}

__attribute__((naked)) void ferrule_mve_maximum_s16(__attribute__((unused))
                                                    const struct ferrule_mve_depthwise_s16 *run)
{
    __asm__(RUN("vmov.i16 q0, #0x8000\n\t", LOAD, "vmax.s16 q0, q0, q4\n\t", "", "", ADVANCE));
}

#else

/* A channel of a pixel; `bias` is that of channel 0 of its block, `data` what is under its first
 * tap. */
static int16_t result_of(const struct ferrule_mve_depthwise_s16 *run, const int32_t *bias,
                         int32_t channel, const int16_t *data)
{
    int32_t place = channel / 2 + FERRULE_MVE_LANES * (channel % 2);
    int32_t sum = bias[place];
    int32_t weight = run->first_weight + channel;

    for (int32_t i = 0; i < run->rows; ++i) {
        for (int32_t j = 0; j < run->columns; ++j) {
            sum += data[(i * run->row_bytes + j * run->column_bytes) / 2] *
                   ferrule_mve_byte(bias, weight);
            weight += FERRULE_MVE_HALVES;
        }
        weight += run->skipped;
    }
    sum = ferrule_high_multiply(sum, bias[run->scales / 4 + place]);
    return (int16_t)ferrule_clamp(sum, run->low, run->high);
}

void ferrule_mve_depthwise_s16(const struct ferrule_mve_depthwise_s16 *run)
{
    for (int32_t i = 0; i < run->pixels; ++i) {
        const int16_t *data = run->data + i * (run->pixel_bytes / 2);

        for (int32_t c = 0; c < run->channels; ++c) {
            const int32_t *bias =
                run->stream + c / FERRULE_MVE_HALVES * (run->scales / 4 + FERRULE_MVE_HALVES);

            run->output[i * run->channels + c] =
                result_of(run, bias, c % FERRULE_MVE_HALVES, data + c);
        }
    }
}

void ferrule_mve_depthwise_multiplied_s16(const struct ferrule_mve_depthwise_s16 *run)
{
    enum { WORDS = FERRULE_MVE_HALVES / 2 };

    for (int32_t i = 0; i < run->pixels; ++i) {
        const int16_t *data = run->data + i * (run->pixel_bytes / 2);

        for (int32_t c = 0; c < run->channels; ++c) {
            int32_t lane = c % FERRULE_MVE_HALVES;
            const int32_t *inputs =
                run->stream +
                c / FERRULE_MVE_HALVES * (WORDS + run->scales / 4 + FERRULE_MVE_HALVES);
            uint32_t input = ((uint32_t)inputs[lane / 2] >> (16 * (lane % 2))) & 0xffffu;

            run->output[i * run->channels + c] = result_of(run, inputs + WORDS, lane, data + input);
        }
    }
}

#endif
