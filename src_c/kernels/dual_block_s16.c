/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/dual_s16.h"

#if FERRULE_HAS_DSP

_Static_assert(offsetof(struct ferrule_dual_pair, clipped) == 24, "used in the assembler below");

/* Two products of four channels and two pixels: the sums of the first pixel are in r2 to r5, of the
 * second one in r6 to r9. */
#define CHANNELS(even, even_next, odd, odd_next)                                                   \
    "ldr lr, [r1], #4\n\t"                                                                         \
    "sxtb16 r12, lr\n\t"                                                                           \
    "smlad " even ", r10, r12, " even "\n\t"                                                       \
    "smlad " even_next ", r11, r12, " even_next "\n\t"                                             \
    "sxtb16 r12, lr, ror #8\n\t"                                                                   \
    "smlad " odd ", r10, r12, " odd "\n\t"                                                         \
    "smlad " odd_next ", r11, r12, " odd_next "\n\t"
#define STEP                                                                                       \
    "ldrd r10, r11, [r0], #8\n\t" CHANNELS("r2", "r6", "r3", "r7") CHANNELS("r4", "r8", "r5", "r9")
#define STEP_BYTES "60"

/* The same with weights of 16 bits. */
#define WIDE_CHANNELS(even, even_next, odd, odd_next)                                              \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlad " even ", r10, r12, " even "\n\t"                                                       \
    "smlad " even_next ", r11, r12, " even_next "\n\t"                                             \
    "smlad " odd ", r10, lr, " odd "\n\t"                                                          \
    "smlad " odd_next ", r11, lr, " odd_next "\n\t"
#define WIDE_STEP                                                                                  \
    "ldrd r10, r11, [r0], #8\n\t" WIDE_CHANNELS("r2", "r6", "r3", "r7")                            \
        WIDE_CHANNELS("r4", "r8", "r5", "r9")
#define WIDE_STEP_BYTES "44"

#define EACH(what)                                                                                 \
    what("r2", "r10") what("r3", "r11") what("r4", "r12") what("r5", "lr") what("r6", "r10")       \
        what("r7", "r11") what("r8", "r12") what("r9", "lr")
#define CONSTANTS           "ldm r1!, {r10, r11, r12, lr}\n\t"
#define DOUBLE(sum, _)      "lsl " sum ", " sum ", #1\n\t"
#define HIGH(sum, constant) "smmulr " sum ", " sum ", " constant "\n\t"
#define BELOW(sum, constant)                                                                       \
    "add " sum ", " sum ", " sum ", asr #31\n\t"                                                   \
    "add " sum ", " sum ", " constant "\n\t"
#define SHIFT(sum, constant) "asr " sum ", " sum ", " constant "\n\t"
#define SATURATE(sum, _)     "ssat " sum ", #16, " sum "\n\t"
#define ONCE                 CONSTANTS EACH(HIGH)
#define TWICE                                                                                      \
    EACH(DOUBLE) CONSTANTS EACH(HIGH)                                                              \
    CONSTANTS EACH(BELOW)                                                                          \
    CONSTANTS EACH(SHIFT)

/* The place in the unrolled loop, in r3, for r3 steps, so that the first pass has 1 to 4. */
#define PLACE(step_bytes)                                                                          \
    "rsb r3, r3, #0\n\t"                                                                           \
    "and r3, r3, #3\n\t"                                                                           \
    "movs r4, #" step_bytes "\n\t"                                                                 \
    "adr.w r5, 2f\n\t"                                                                             \
    "mla r3, r3, r4, r5\n\t"                                                                       \
    "orr r3, r3, #1\n\t"

/* The frame: end of the patches, place in the loop, patches, both pixels, channels left, whether
 * to clip. The functions are aligned, since ADR rounds its place down to a multiple of four. */
#define PAIR(name, step, step_bytes, requantize)                                                   \
    __attribute__((naked, noinline, aligned(4))) void name(const struct ferrule_dual_pair *pair    \
                                                           __attribute__((unused)))                \
    {                                                                                              \
        __asm__("push {r4-r11, lr}\n\t"                                                            \
                "sub sp, sp, #28\n\t"                                                              \
                "ldm r0, {r1-r7}\n\t"                                                              \
                "strd r4, r5, [sp, #12]\n\t"                                                       \
                "strd r6, r7, [sp, #20]\n\t"                                                       \
                "str r2, [sp, #8]\n\t"                                                             \
                "add r2, r2, r3, lsl #3\n\t"                                                       \
                "str r2, [sp]\n\t" PLACE(                                                          \
                    step_bytes) "str r3, [sp, #4]\n\t"                                             \
                                "1:\n\t" /* a block of channels */                                 \
                                "ldm r1, {r2-r5}\n\t"                                              \
                                "ldm r1!, {r6-r9}\n\t"                                             \
                                "ldr r0, [sp, #8]\n\t"                                             \
                                "ldr pc, [sp, #4]\n\t"                                             \
                                ".balign 4\n\t"                                                    \
                                "2:\n\t" step step step step "ldr r12, [sp]\n\t"                   \
                                "cmp r0, r12\n\t"                                                  \
                                "bne.w 2b\n\t" requantize EACH(                                    \
                                    SATURATE) "pkhbt r2, r2, r3, lsl #16\n\t"                      \
                                              "pkhbt r4, r4, r5, lsl #16\n\t"                      \
                                              "pkhbt r6, r6, r7, lsl #16\n\t"                      \
                                              "pkhbt r8, r8, r9, lsl #16\n\t"                      \
                                              "ldr r3, [sp, #24]\n\t"                              \
                                              "cbz r3, 3f\n\t"                                     \
                                              "usat16 r2, #15, r2\n\t"                             \
                                              "usat16 r4, #15, r4\n\t"                             \
                                              "usat16 r6, #15, r6\n\t"                             \
                                              "usat16 r8, #15, r8\n\t"                             \
                                              "3:\n\t"                                             \
                                              "ldrd r10, r11, [sp, #12]\n\t"                       \
                                              "ldr r12, [sp, #20]\n\t"                             \
                                              "str r6, [r11]\n\t"                                  \
                                              "str r8, [r11, #4]\n\t"                              \
                                              "str r2, [r10]\n\t"                                  \
                                              "str r4, [r10, #4]\n\t"                              \
                                              "subs r12, r12, #4\n\t"                              \
                                              "beq 4f\n\t"                                         \
                                              "movs r3, #4\n\t"                                    \
                                              "cmp r12, r3\n\t"                                    \
                                              "itt lt\n\t" /* the last block ends with the last    \
                                                              channel */                           \
                                              "movlt r3, r12\n\t"                                  \
                                              "movlt r12, #4\n\t"                                  \
                                              "add r10, r10, r3, lsl #1\n\t"                       \
                                              "add r11, r11, r3, lsl #1\n\t"                       \
                                              "strd r10, r11, [sp, #12]\n\t"                       \
                                              "str r12, [sp, #20]\n\t"                             \
                                              "b.w 1b\n\t"                                         \
                                              "4:\n\t"                                             \
                                              "add sp, sp, #28\n\t"                                \
                                              "pop {r4-r11, pc}\n\t");                             \
    }

PAIR(ferrule_dual_pair_s16, STEP, STEP_BYTES, ONCE)
PAIR(ferrule_dual_pair_twice_s16, STEP, STEP_BYTES, TWICE)
PAIR(ferrule_dual_pair_unpacked_s16, WIDE_STEP, WIDE_STEP_BYTES, ONCE)

/* Two products of four channels and one pixel, to sums of 64 bits in r2 to r9. */
#define LONG_STEP                                                                                  \
    "ldr r10, [r0], #4\n\t"                                                                        \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "sxtb16 r11, r12\n\t"                                                                          \
    "smlald r2, r3, r10, r11\n\t"                                                                  \
    "sxtb16 r12, r12, ror #8\n\t"                                                                  \
    "smlald r4, r5, r10, r12\n\t"                                                                  \
    "sxtb16 r11, lr\n\t"                                                                           \
    "smlald r6, r7, r10, r11\n\t"                                                                  \
    "sxtb16 lr, lr, ror #8\n\t"                                                                    \
    "smlald r8, r9, r10, lr\n\t"
#define LONG_STEP_BYTES "40"
#define LONG_WIDE_STEP                                                                             \
    "ldr r10, [r0], #4\n\t"                                                                        \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlald r2, r3, r10, r12\n\t"                                                                  \
    "smlald r4, r5, r10, lr\n\t"                                                                   \
    "ldrd r12, lr, [r1], #8\n\t"                                                                   \
    "smlald r6, r7, r10, r12\n\t"                                                                  \
    "smlald r8, r9, r10, lr\n\t"
#define LONG_WIDE_STEP_BYTES "28"

#define LONG(name, step, step_bytes)                                                               \
    __attribute__((naked, noinline, aligned(4))) const int32_t *name(                              \
        const int32_t *stream __attribute__((unused)),                                             \
        const int16_t *data __attribute__((unused)), int64_t *sums __attribute__((unused)),        \
        int32_t steps __attribute__((unused)))                                                     \
    {                                                                                              \
        __asm__("push {r2, r4-r11, lr}\n\t"                                                        \
                "sub sp, sp, #8\n\t"                                                               \
                "mov r12, r0\n\t"                                                                  \
                "mov r0, r1\n\t"                                                                   \
                "mov r1, r12\n\t"                                                                  \
                "add r2, r0, r3, lsl #2\n\t"                                                       \
                "str r2, [sp]\n\t" PLACE(step_bytes) "mov r11, r3\n\t"                             \
                                                     "ldm r1!, {r2-r9}\n\t"                        \
                                                     "bx r11\n\t"                                  \
                                                     ".balign 4\n\t"                               \
                                                     "2:\n\t" step step step step                  \
                                                     "ldr r12, [sp]\n\t"                           \
                                                     "cmp r0, r12\n\t"                             \
                                                     "bne.w 2b\n\t"                                \
                                                     "add sp, sp, #8\n\t"                          \
                                                     "mov r0, r1\n\t"                              \
                                                     "pop {r1}\n\t"                                \
                                                     "stm r1, {r2-r9}\n\t"                         \
                                                     "pop {r4-r11, pc}\n\t");                      \
    }

LONG(ferrule_dual_long_s16, LONG_STEP, LONG_STEP_BYTES)
LONG(ferrule_dual_long_unpacked_s16, LONG_WIDE_STEP, LONG_WIDE_STEP_BYTES)

#else

/* The weight of a channel of a block, of 8 or 16 bits. */
static int32_t weight_of(const int32_t *weights, int32_t channel, int32_t product, bool unpacked)
{
    int32_t step = product / 2;

    if (unpacked) {
        uint32_t word = (uint32_t)weights[4 * step + channel];
        return (int16_t)(word >> (16 * (product % 2)));
    }
    uint32_t word = (uint32_t)weights[2 * step + channel / 2];
    return (int8_t)(word >> (16 * (product % 2) + 8 * (channel % 2)));
}

/* The block at `stream` for one pixel; returns the next block. */
static const int32_t *store_block(const struct ferrule_dual_pair *pair, const int32_t *stream,
                                  const int16_t *patch, int16_t *output, bool twice, bool unpacked)
{
    const int32_t *weights = stream + FERRULE_DUAL_CHANNELS;
    const int32_t *scales = weights + (unpacked ? 4 : 2) * pair->steps;
    int32_t floor = pair->clipped != 0 ? -1 : 0;

    for (int32_t c = 0; c < FERRULE_DUAL_CHANNELS; ++c) {
        int32_t sum = stream[c];
        int32_t value;

        for (int32_t k = 0; k < 2 * pair->steps; ++k) {
            sum += patch[k / 2 * 4 + k % 2] * weight_of(weights, c, k, unpacked);
        }
        value = ferrule_high_product(twice ? 2 * sum : sum, scales[c]);
        if (twice) {
            value = (value - (value < 0 ? 1 : 0) + scales[4 + c]) >> scales[8 + c];
        }
        value = ferrule_saturate_s16(value);
        output[c] = (int16_t)(value & (value < 0 ? ~floor : -1));
    }
    return scales + (twice ? 12 : 4);
}

static void store_pair(const struct ferrule_dual_pair *pair, bool twice, bool unpacked)
{
    for (int32_t p = 1; p >= 0; --p) {
        const int32_t *stream = pair->stream;
        int16_t *output = p == 0 ? pair->first : pair->second;

        for (int32_t c = 0; c < pair->channels; c += FERRULE_DUAL_CHANNELS) {
            int32_t last = pair->channels - FERRULE_DUAL_CHANNELS;

            stream = store_block(pair, stream, pair->patches + 2 * p,
                                 output + (c < last ? c : last), twice, unpacked);
        }
    }
}

void ferrule_dual_pair_s16(const struct ferrule_dual_pair *pair)
{
    store_pair(pair, false, false);
}

void ferrule_dual_pair_twice_s16(const struct ferrule_dual_pair *pair)
{
    store_pair(pair, true, false);
}

void ferrule_dual_pair_unpacked_s16(const struct ferrule_dual_pair *pair)
{
    store_pair(pair, false, true);
}

static const int32_t *sum_long(const int32_t *stream, const int16_t *data, int64_t *sums,
                               int32_t steps, bool unpacked)
{
    const int32_t *weights = stream + 2 * FERRULE_DUAL_CHANNELS;

    for (int32_t c = 0; c < FERRULE_DUAL_CHANNELS; ++c) {
        sums[c] = (int64_t)((uint64_t)(uint32_t)stream[2 * c] |
                            ((uint64_t)(uint32_t)stream[2 * c + 1] << 32));
        for (int32_t k = 0; k < 2 * steps; ++k) {
            sums[c] += data[k] * weight_of(weights, c, k, unpacked);
        }
    }
    return weights + (unpacked ? 4 : 2) * steps;
}

const int32_t *ferrule_dual_long_s16(const int32_t *stream, const int16_t *data, int64_t *sums,
                                     int32_t steps)
{
    return sum_long(stream, data, sums, steps, false);
}

const int32_t *ferrule_dual_long_unpacked_s16(const int32_t *stream, const int16_t *data,
                                              int64_t *sums, int32_t steps)
{
    return sum_long(stream, data, sums, steps, true);
}

#endif
