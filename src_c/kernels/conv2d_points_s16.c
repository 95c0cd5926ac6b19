/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/dual_s16.h"

enum { CHANNELS = FERRULE_DUAL_CHANNELS, MOST_STEPS = FERRULE_POINTS_MOST_STEPS };

/* Four channels of all pixels. */
struct run {
    const int32_t *weights;
    const int16_t *data;
    int16_t *output;
    int32_t pixels;
    int32_t data_bytes; /* behind the data of a pixel to that of the next */
    int32_t output_bytes;
    int32_t steps; /* of two products */
};

#if FERRULE_HAS_DSP

_Static_assert(offsetof(struct run, steps) == 24, "used in the assembler below");

/* Two products of four channels. */
#define STEP                                                                                       \
    "ldr.w r6, [r0], #4\n\t"                                                                       \
    "ldm.w r1!, {r7, r8, r12, lr}\n\t"                                                             \
    "smlad r2, r6, r7, r2\n\t"                                                                     \
    "smlad r3, r6, r8, r3\n\t"                                                                     \
    "smlad r4, r6, r12, r4\n\t"                                                                    \
    "smlad r5, r6, lr, r5\n\t"
#define STEP_BYTES "24"

/* The frame: weights, output_bytes, the place in the eight steps. The function is aligned, since
 * ADR rounds its place down to a multiple of four. */
#define POINTS(name, saturate)                                                                     \
    __attribute__((naked, noinline, aligned(4))) static void name(__attribute__((unused))          \
                                                                  const struct run *run)           \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "sub sp, sp, #12\n\t"                                                              \
                "ldm r0, {r1-r7}\n\t"                                                              \
                "strd r1, r6, [sp]\n\t"                                                            \
                "mov r0, r2\n\t"                                                                   \
                "mov r10, r3\n\t"                                                                  \
                "mov r11, r4\n\t"                                                                  \
                "mov r9, r5\n\t"                                                                   \
                "rsb r7, r7, #8\n\t"                                                               \
                "movs r2, #" STEP_BYTES "\n\t"                                                     \
                "adr.w r3, 2f\n\t"                                                                 \
                "mla r7, r7, r2, r3\n\t"                                                           \
                "orr r7, r7, #1\n\t"                                                               \
                "str r7, [sp, #8]\n\t"                                                             \
                "1:\n\t" /* a pixel */                                                             \
                "ldr r1, [sp]\n\t"                                                                 \
                "ldm r1!, {r2-r5}\n\t"                                                             \
                "ldr pc, [sp, #8]\n\t"                                                             \
                ".balign 4\n\t"                                                                    \
                "2:\n\t" STEP STEP STEP STEP STEP STEP STEP STEP "ldm r1, {r7, r8, r12, lr}\n\t"   \
                "smmulr r2, r2, r7\n\t"                                                            \
                "smmulr r3, r3, r8\n\t"                                                            \
                "smmulr r4, r4, r12\n\t"                                                           \
                "smmulr r5, r5, lr\n\t" saturate("r2") saturate("r3") saturate("r4")               \
                    saturate("r5") "pkhbt r2, r2, r3, lsl #16\n\t"                                 \
                                   "pkhbt r4, r4, r5, lsl #16\n\t"                                 \
                                   "ldr r7, [sp, #4]\n\t"                                          \
                                   "str r4, [r10, #4]\n\t"                                         \
                                   "str r2, [r10]\n\t"                                             \
                                   "add r10, r10, r7\n\t"                                          \
                                   "add r0, r0, r9\n\t"                                            \
                                   "subs r11, r11, #1\n\t"                                         \
                                   "bne.w 1b\n\t"                                                  \
                                   "add sp, sp, #12\n\t"                                           \
                                   "pop {r4-r11, pc}\n\t");                                        \
    }

#define SATURATE(sum) "ssat " sum ", #16, " sum "\n\t"
#define RECTIFY(sum)  "usat " sum ", #15, " sum "\n\t"

POINTS(multiply, SATURATE)
POINTS(multiply_rectified, RECTIFY)

#else

static void multiply_from(const struct run *run, int32_t low)
{
    const int16_t *data = run->data;
    int16_t *output = run->output;

    for (int32_t left = run->pixels; left > 0; --left) {
        for (int32_t c = 0; c < CHANNELS; ++c) {
            const int32_t *weights = run->weights + CHANNELS + c;
            uint32_t sum = (uint32_t)run->weights[c];

            for (int32_t step = 0; step < run->steps; ++step) {
                sum = ferrule_dual_multiply_add(ferrule_pair(data[2 * step], data[2 * step + 1]),
                                                (uint32_t)*weights, sum);
                weights += CHANNELS;
            }
            output[c] = (int16_t)ferrule_clamp(ferrule_high_product((int32_t)sum, *weights), low,
                                               INT16_MAX);
        }
        data += 2 * run->steps + run->data_bytes / 2;
        output += run->output_bytes / 2;
    }
}

static void multiply(const struct run *run)
{
    multiply_from(run, INT16_MIN);
}

static void multiply_rectified(const struct run *run)
{
    multiply_from(run, 0);
}

#endif

void ferrule_conv2d_points_s16(const struct ferrule_conv2d_points_s16_params *params,
                               const int16_t *input, int16_t *output)
{
    const int32_t *stream = params->stream;

    for (int32_t left = params->blocks; left > 0; --left) {
        const int32_t steps = stream[2];
        const struct run run = {
            .weights = stream + 3,
            .data = input + stream[0],
            .output = output + stream[1],
            .pixels = params->pixels,
            .data_bytes = 2 * (params->input_c - 2 * steps),
            .output_bytes = 2 * params->output_c,
            .steps = steps,
        };

        if (params->low >= 0) {
            multiply_rectified(&run);
        } else {
            multiply(&run);
        }
        stream += 3 + CHANNELS * (steps + 2);
    }
    ferrule_clamp_s16(output, params->pixels * params->output_c, params->low, params->high);
}
