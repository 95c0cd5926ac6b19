/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/sum.h"

/* The arithmetic is that of ferrule_rescaled_product(). */
#if FERRULE_HAS_MVE
/* An even number of elements, since lanes of 32 bits need the predicates of both halves. */
static void multiply_pairs(const struct ferrule_product_params *params, const int8_t *a,
                           const int8_t *b, int8_t *output, int32_t count)
{
    const int32_t limits[] = {params->result.zero_point, params->result.low, params->result.high};

    __asm__ volatile(
        "ldr lr, [%[limits]]\n\t"
        "vdup.16 q4, lr\n\t"
        "ldr lr, [%[limits], #4]\n\t"
        "vdup.16 q5, lr\n\t"
        "ldr lr, [%[limits], #8]\n\t"
        "vdup.16 q6, lr\n\t"
        "wlstp.16 lr, %[count], 2f\n\t"
        "1:\n\t"
        "vldrb.s16 q0, [%[a]], #8\n\t"
        "vldrb.s16 q1, [%[b]], #8\n\t"
        "vadd.i16 q0, q0, %[first]\n\t"
        "vadd.i16 q1, q1, %[second]\n\t"
        "vmullb.s16 q2, q0, q1\n\t"
        "vmullt.s16 q3, q0, q1\n\t"
        "vshr.s32 q0, q2, #31\n\t"
        "vshr.s32 q1, q3, #31\n\t"
        "vqrdmlah.s32 q0, q2, %[multiplier]\n\t"
        "vqrdmlah.s32 q1, q3, %[multiplier]\n\t"
        "vrshl.s32 q0, %[shift]\n\t"
        "vrshl.s32 q1, %[shift]\n\t"
        "vmovnt.i32 q0, q1\n\t" /* each fits into 16 bits */
        "vqadd.s16 q0, q0, q4\n\t"
        "vmax.s16 q0, q0, q5\n\t"
        "vmin.s16 q0, q0, q6\n\t"
        "vstrb.16 q0, [%[output]], #8\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [a] "+l"(a), [b] "+l"(b), [output] "+l"(output)
        : [count] "r"(count), [first] "r"(params->first_offset),
          [second] "r"(params->second_offset), [multiplier] "r"(params->result.multiplier),
          [shift] "r"(params->result.shift), [limits] "r"(limits)
        : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "memory");
}
#elif FERRULE_HAS_DSP
/* Four elements at a time, as pairs of halfwords. */
#define FERRULE_STEP                                                                               \
    "ldr r8, [r0], #4\n\t"                                                                         \
    "ldr r9, [r1], #4\n\t"                                                                         \
    "sxtab16 r10, r3, r8\n\t"                                                                      \
    "sxtab16 r8, r3, r8, ror #8\n\t"                                                               \
    "sxtab16 r11, r4, r9\n\t"                                                                      \
    "sxtab16 r9, r4, r9, ror #8\n\t"                                                               \
    "sadd16 r11, r11, r11\n\t"                                                                     \
    "sadd16 r9, r9, r9\n\t"                                                                        \
    "smultt r12, r10, r11\n\t"                                                                     \
    "smulbb r10, r10, r11\n\t"                                                                     \
    "smultt r11, r8, r9\n\t"                                                                       \
    "smulbb r8, r8, r9\n\t"                                                                        \
    "smmlar r9, r12, r5, r6\n\t"                                                                   \
    "add r12, r9, r12, asr #31\n\t"                                                                \
    "smmlar r9, r10, r5, r6\n\t"                                                                   \
    "add r10, r9, r10, asr #31\n\t"                                                                \
    "smmlar r9, r11, r5, r6\n\t"                                                                   \
    "add r11, r9, r11, asr #31\n\t"                                                                \
    "smmlar r9, r8, r5, r6\n\t"                                                                    \
    "add r8, r9, r8, asr #31\n\t"                                                                  \
    "asr r12, r12, r7\n\t"                                                                         \
    "asr r10, r10, r7\n\t"                                                                         \
    "asr r11, r11, r7\n\t"                                                                         \
    "asr r8, r8, r7\n\t"                                                                           \
    "pkhbt r10, r10, r12, lsl #16\n\t"                                                             \
    "pkhbt r8, r8, r11, lsl #16\n\t"                                                               \
    "usat16 r10, #8, r10\n\t"                                                                      \
    "usat16 r8, #8, r8\n\t"                                                                        \
    "orr r10, r10, r8, lsl #8\n\t"                                                                 \
    "ldrd r8, r9, [sp]\n\t"                                                                        \
    "uqadd8 r10, r10, r8\n\t"                                                                      \
    "uadd8 r10, r10, r9\n\t"                                                                       \
    "str r10, [r2], #4\n\t"

#include "ferrule/kernels/product_fours.inc.h"
#endif

static void multiply(const struct ferrule_product_params *params, const int8_t *a, const int8_t *b,
                     int8_t *output, int32_t count)
{
    const int32_t right = -params->result.shift;
    const int32_t low = params->result.low;
    const int32_t high = params->result.high;
    int32_t i = 0;

#if FERRULE_HAS_MVE
    i = count & ~1;
    multiply_pairs(params, a, b, output, i);
#elif FERRULE_HAS_DSP
    if (count > 3) {
        const uint32_t above = (uint32_t)(UINT8_MAX - (high - low));
        const uint32_t lowest = ((uint32_t)low - above) & UINT8_MAX;
        const struct fours fours = {
            a,
            b,
            output,
            ferrule_pair(params->first_offset, params->first_offset),
            ferrule_pair(params->second_offset, params->second_offset),
            params->result.multiplier,
            (params->result.zero_point - low) * ((int32_t)1 << right) + ((int32_t)1 << (right - 1)),
            (uint32_t)right,
            a + (count & ~3),
            above * UINT32_C(0x01010101),
            lowest * UINT32_C(0x01010101),
        };

        multiply_fours(&fours);
        i = count & ~3;
    }
#endif
    for (; i < count; ++i) {
        int32_t product = (a[i] + params->first_offset) * (b[i] + params->second_offset);

        output[i] = (int8_t)ferrule_clamp(
            ferrule_rescaled_product(product, params->result.multiplier, right) +
                params->result.zero_point,
            low, high);
    }
}

void ferrule_product_s8(const struct ferrule_product_params *params, const int8_t *first,
                        const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        multiply(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
