/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/fully_connected_mve.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_fully_connected_mve_s8_params, general) == 16,
               "used in the assembler below");
_Static_assert(offsetof(struct ferrule_fully_connected_mve_s8_params, output) == 20,
               "used in the assembler below");

/* 16 products of eight channels: 17 instructions of 4 bytes. VMLADAVA adds to the even core
 * registers, so the odd ones hold the addresses. */
#define STEP                                                                                       \
    "vldrb.u8 q4, [r9], #16\n\t"                                                                   \
    "vldrb.u8 q0, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r0, q0, q4\n\t"                                                                   \
    "vldrb.u8 q1, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r2, q1, q4\n\t"                                                                   \
    "vldrb.u8 q2, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r4, q2, q4\n\t"                                                                   \
    "vldrb.u8 q3, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r6, q3, q4\n\t"                                                                   \
    "vldrb.u8 q0, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r8, q0, q4\n\t"                                                                   \
    "vldrb.u8 q1, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r10, q1, q4\n\t"                                                                  \
    "vldrb.u8 q2, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r12, q2, q4\n\t"                                                                  \
    "vldrb.u8 q3, [r5], #16\n\t"                                                                   \
    "vmladava.s8 lr, q3, q4\n\t"

/* The same of four channels. */
#define STEP_OF_FOUR                                                                               \
    "vldrb.u8 q4, [r9], #16\n\t"                                                                   \
    "vldrb.u8 q0, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r0, q0, q4\n\t"                                                                   \
    "vldrb.u8 q1, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r2, q1, q4\n\t"                                                                   \
    "vldrb.u8 q2, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r8, q2, q4\n\t"                                                                   \
    "vldrb.u8 q3, [r5], #16\n\t"                                                                   \
    "vmladava.s8 r10, q3, q4\n\t"

/*
 * The frame: the row, the address at which the products begin (so that the first pass has 1 to 4
 * steps), whether the output is general, the zero point. In r3 are the channels behind a block of
 * eight; the predicate has those of the last block.
 */
__attribute__((naked, aligned(4))) void ferrule_mve_multiply_row(
    __attribute__((unused)) const struct ferrule_fully_connected_mve_s8_params *params,
    __attribute__((unused)) const int8_t *row, __attribute__((unused)) int8_t *output)
{
    __asm__("push {r4-r11, lr}\n\t"
            "vpush {d8-d15}\n\t"
            "sub sp, #20\n\t"
            "ldrd r4, r6, [r0, #16]\n\t"  /* general, zero point */
            "ldrd r8, r10, [r0, #24]\n\t" /* limits */
            "strd r4, r6, [sp, #8]\n\t"
            "cmp r4, #0\n\t"
            "it eq\n\t"
            "moveq r8, r6\n\t"
            "vdup.16 q6, r8\n\t" /* plain: the zero point; otherwise the lower limit */
            "vdup.16 q7, r10\n\t"
            "ldr r5, [r0]\n\t"
            "ldrd r6, r7, [r0, #4]\n\t" /* vectors of the first pass, bytes of the row */
            "ldr r3, [r0, #12]\n\t"
            "add r7, r7, r1\n\t"
            "rsb r6, r6, #4\n\t"
            "movs r4, #68\n\t"
            "adr.w r8, 2f\n\t"
            "mla r6, r6, r4, r8\n\t"
            "orr r6, r6, #1\n\t"
            "strd r1, r6, [sp]\n\t"
            "mov r1, r2\n\t"
            "vctp.16 r3\n\t"
            "subs r3, #8\n\t"
            "blt.w 5f\n\t"
            "1:\n\t" /* a block of channels */
            "ldr r9, [sp]\n\t"
            "ldm r5!, {r0, r2, r4, r6}\n\t"
            "ldm r5!, {r8, r10, r12, lr}\n\t"
            "ldr pc, [sp, #4]\n\t"
            ".balign 4\n\t"
            "2:\n\t" /* four times 16 products */
            STEP STEP STEP STEP "cmp r9, r7\n\t"
            "bne.w 2b\n\t"
            "6:\n\t"
            "vmov q2[2], q2[0], r0, r4\n\t"
            "vmov q2[3], q2[1], r2, r6\n\t"
            "vmov q3[2], q3[0], r8, r12\n\t"
            "vmov q3[3], q3[1], r10, lr\n\t"
            "vldrw.u32 q0, [r5], #16\n\t"
            "vldrw.u32 q1, [r5], #16\n\t" FERRULE_MVE_HIGH("q2", "q0") FERRULE_MVE_HIGH(
                "q3",
                "q1") "ldrd r0, r2, [sp, #8]\n\t"
                      "vldrb.s32 q0, [r5], #4\n\t"
                      "vldrb.s32 q1, [r5], #4\n\t"
                      "cbz r0, 3f\n\t" FERRULE_MVE_BELOW("q2", "q4") FERRULE_MVE_BELOW("q3", "q5")
                          FERRULE_MVE_SHIFT("q2", "q0") FERRULE_MVE_SHIFT(
                              "q3", "q1") "vqmovnb.s32 q2, q2\n\t"
                                          "vqmovnt.s32 q2, q3\n\t"
                                          "vqadd.s16 q2, q2, r2\n\t"
                                          "vmax.s16 q2, q2, q6\n\t"
                                          "vmin.s16 q2, q2, q7\n\t"
                                          "b 4f\n\t"
                                          "3:\n\t" FERRULE_MVE_SHIFT("q2", "q0") FERRULE_MVE_SHIFT(
                                              "q3", "q1") "vqmovnb.s32 q2, q2\n\t"
                                                          "vqmovnt.s32 q2, q3\n\t"
                                                          "vqadd.s16 q2, q2, q6\n\t"
                                                          "vqmovnb.s16 q2, q2\n\t"
                                                          "4:\n\t"
                                                          "subs r3, #8\n\t"
                                                          "vpst\n\t"
                                                          "vstrbt.16 q2, [r1], #8\n\t"
                                                          "bge.w 1b\n\t"
                                                          "5:\n\t" /* the last channels */
                                                          "adds r3, #8\n\t"
                                                          "beq.w 7f\n\t"
                                                          "vctp.16 r3\n\t"
                                                          "cmp r3, #4\n\t"
                                                          "mov.w r3, #0\n\t"
                                                          "bgt.w 1b\n\t"
                                                          "ldr r9, [sp]\n\t"
                                                          "ldm r5!, {r0, r2, r4, r6}\n\t"
                                                          "ldm r5!, {r8, r10, r12, lr}\n\t"
                                                          "sub.w lr, r7, r9\n\t"
                                                          "lsr.w lr, lr, #4\n\t"
                                                          "dls lr, lr\n\t"
                                                          "8:\n\t" STEP_OF_FOUR "le lr, 8b\n\t"
                                                          "b.w 6b\n\t"
                                                          "7:\n\t"
                                                          "add sp, #20\n\t"
                                                          "vpop {d8-d15}\n\t"
                                                          "pop {r4-r11, pc}\n\t");
}

/* The same as STEP for 8 products of int16. */
#define CHANNEL_S16(weights, sum)                                                                  \
    "vldrb.s16 " weights ", [r5], #8\n\t"                                                          \
    "vmladava.s16 " sum ", " weights ", q4\n\t"
#define STEP_S16                                                                                   \
    "vldrh.u16 q4, [r9], #16\n\t" CHANNEL_S16("q0", "r0") CHANNEL_S16("q1", "r2")                  \
        CHANNEL_S16("q2", "r4") CHANNEL_S16("q3", "r6") CHANNEL_S16("q0", "r8")                    \
            CHANNEL_S16("q1", "r10") CHANNEL_S16("q2", "r12") CHANNEL_S16("q3", "lr")

/* At the stack pointer: the address at which the products begin. */
#define ROW_SUMS(name, step)                                                                       \
    __attribute__((naked, aligned(4))) void name(                                                  \
        __attribute__((unused)) const struct ferrule_mve_row *row,                                 \
        __attribute__((unused)) const int32_t *stream, __attribute__((unused)) const int32_t *end, \
        __attribute__((unused)) int32_t *sums)                                                     \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "vpush {d8-d9}\n\t"                                                                \
                "sub sp, #4\n\t"                                                                   \
                "ldrd r11, r6, [r0]\n\t"                                                           \
                "add r7, r11, r6, lsl #4\n\t"                                                      \
                "rsb r6, r6, #0\n\t"                                                               \
                "and r6, r6, #3\n\t"                                                               \
                "movs r4, #68\n\t"                                                                 \
                "adr.w r8, 2f\n\t"                                                                 \
                "mla r6, r6, r4, r8\n\t"                                                           \
                "orr r6, r6, #1\n\t"                                                               \
                "str r6, [sp]\n\t"                                                                 \
                "mov r5, r1\n\t"                                                                   \
                "mov r1, r3\n\t"                                                                   \
                "mov r3, r2\n\t"                                                                   \
                "1:\n\t"                                                                           \
                "mov r9, r11\n\t"                                                                  \
                "ldm r5!, {r0, r2, r4, r6}\n\t"                                                    \
                "ldm r5!, {r8, r10, r12, lr}\n\t"                                                  \
                "ldr pc, [sp]\n\t"                                                                 \
                ".balign 4\n\t"                                                                    \
                "2:\n\t" step step step step "cmp r9, r7\n\t"                                      \
                "bne.w 2b\n\t"                                                                     \
                "stm.w r1!, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"                                \
                "cmp r5, r3\n\t"                                                                   \
                "bne.w 1b\n\t"                                                                     \
                "add sp, #4\n\t"                                                                   \
                "vpop {d8-d9}\n\t"                                                                 \
                "pop {r4-r11, pc}\n\t");                                                           \
    }

ROW_SUMS(ferrule_mve_row_sums, STEP)
ROW_SUMS(ferrule_mve_row_sums_s16, STEP_S16)

#else

void ferrule_mve_row_sums(const struct ferrule_mve_row *row, const int32_t *stream,
                          const int32_t *end, int32_t *sums)
{
    enum { CHANNELS = 2 * FERRULE_MVE_LANES };

    while (stream != end) {
        const int32_t *weights = stream + CHANNELS;

        for (int32_t place = 0; place < CHANNELS; ++place) {
            int32_t sum = stream[place];

            for (int32_t k = 0; k < FERRULE_MVE_BYTES * row->vectors; ++k) {
                int32_t vector = CHANNELS * (k / FERRULE_MVE_BYTES) + place;

                sum += row->data[k] * ferrule_mve_byte(weights, vector * FERRULE_MVE_BYTES +
                                                                    k % FERRULE_MVE_BYTES);
            }
            *sums++ = sum;
        }
        stream = weights + 2 * FERRULE_MVE_BYTES * row->vectors;
    }
}

void ferrule_mve_row_sums_s16(const struct ferrule_mve_row *row, const int32_t *stream,
                              const int32_t *end, int32_t *sums)
{
    enum { CHANNELS = 2 * FERRULE_MVE_LANES, PRODUCTS = FERRULE_MVE_BYTES / 2 };

    while (stream != end) {
        const int32_t *weights = stream + CHANNELS;

        for (int32_t place = 0; place < CHANNELS; ++place) {
            int32_t sum = stream[place];

            for (int32_t k = 0; k < PRODUCTS * row->vectors; ++k) {
                int32_t vector = CHANNELS * (k / PRODUCTS) + place;
                int16_t element;

                (void)memcpy(&element, row->data + 2 * k, sizeof element);
                sum += element * ferrule_mve_byte(weights, vector * PRODUCTS + k % PRODUCTS);
            }
            *sums++ = sum;
        }
        stream = weights + 2 * PRODUCTS * row->vectors;
    }
}

void ferrule_mve_multiply_row(const struct ferrule_fully_connected_mve_s8_params *params,
                              const int8_t *row, int8_t *output)
{
    enum { CHANNELS = 2 * FERRULE_MVE_LANES };
    const int32_t *stream = params->stream;

    for (int32_t c = 0; c < params->output_c; c += CHANNELS) {
        const int32_t channels =
            params->output_c - c > FERRULE_MVE_LANES ? CHANNELS : (int32_t)FERRULE_MVE_LANES;
        const int32_t *weights = stream + CHANNELS;
        const int32_t *multipliers = weights + params->data_bytes * channels / 4;
        const int32_t *shifts = multipliers + CHANNELS;

        for (int32_t i = 0; i < channels && c + i < params->output_c; ++i) {
            int32_t place = i / 2 + FERRULE_MVE_LANES * (i % 2);
            int32_t sum = stream[place];

            for (int32_t k = 0; k < params->data_bytes; ++k) {
                int32_t vector =
                    channels * (k / FERRULE_MVE_BYTES) + i / 2 + channels / 2 * (i % 2);

                sum += row[k] * ferrule_mve_byte(weights, vector * FERRULE_MVE_BYTES +
                                                              k % FERRULE_MVE_BYTES);
            }
            output[c + i] = ferrule_mve_store(sum, multipliers[place],
                                              ferrule_mve_byte(shifts, place), &params->output);
        }
        stream = shifts + 2;
    }
}

#endif

void ferrule_fully_connected_mve_s8(const struct ferrule_fully_connected_mve_s8_params *params,
                                    const int8_t *input, int8_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        ferrule_mve_multiply_row(params, input, output);
        input += params->input_c;
        output += params->output_c;
    }
}

void ferrule_fully_connected_copied_mve_s8(
    const struct ferrule_fully_connected_mve_s8_params *params, const int8_t *input, int8_t *output,
    void *scratch)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        ferrule_mve_copy(scratch, input, params->input_c); /* the weights of the rest are 0 */
        ferrule_mve_multiply_row(params, scratch, output);
        input += params->input_c;
        output += params->output_c;
    }
}
