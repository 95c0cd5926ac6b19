/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/requantize.h"

/* A product times 2^14 is below 2^30; its high product has a fraction of FRACTION_BITS. */
enum { PRODUCT_BITS = 14, FRACTION_BITS = 16 };

#if FERRULE_HAS_MVE
/* An even number of elements, since lanes of 32 bits need the predicates of both halves. The
 * vectors of 128 and 64 and the doubling of the high product are the 2^14. */
static void multiply_pairs(const struct ferrule_scaled_product_params *params, const int8_t *a,
                           const int8_t *b, int8_t *output, int32_t count)
{
    const int32_t vectors[] = {128, 64, params->low, params->high};

    __asm__ volatile(
        "ldr lr, [%[vectors]]\n\t"
        "vdup.16 q4, lr\n\t"
        "ldr lr, [%[vectors], #4]\n\t"
        "vdup.16 q5, lr\n\t"
        "ldr lr, [%[vectors], #8]\n\t"
        "vdup.16 q6, lr\n\t"
        "ldr lr, [%[vectors], #12]\n\t"
        "vdup.16 q7, lr\n\t"
        "wlstp.16 lr, %[count], 2f\n\t"
        "1:\n\t"
        "vldrb.s16 q0, [%[a]], #8\n\t"
        "vldrb.s16 q1, [%[b]], #8\n\t"
        "vmlas.s16 q0, q4, %[first]\n\t"
        "vmlas.s16 q1, q5, %[second]\n\t"
        "vmullb.s16 q2, q0, q1\n\t"
        "vmullt.s16 q3, q0, q1\n\t"
        "vdup.32 q0, %[constant]\n\t"
        "vdup.32 q1, %[constant]\n\t"
        "vqdmlah.s32 q0, q2, %[multiplier]\n\t"
        "vqdmlah.s32 q1, q3, %[multiplier]\n\t"
        "vshrnb.i32 q1, q0, #16\n\t" /* below the upper halves of the odd lanes */
        "vmax.s16 q1, q1, q6\n\t"
        "vmin.s16 q1, q1, q7\n\t"
        "vstrb.16 q1, [%[output]], #8\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [a] "+l"(a), [b] "+l"(b), [output] "+l"(output)
        : [count] "r"(count), [first] "r"(128 * params->first_offset),
          [second] "r"(64 * params->second_offset), [multiplier] "r"(params->multiplier),
          [constant] "r"(params->constant), [vectors] "r"(vectors)
        : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");
}

#elif FERRULE_HAS_DSP
/* Four elements at a time. Their bytes become the upper bytes of halfwords; half of a difference of
 * these is 128 times that of the bytes. */
#define FERRULE_STEP                                                                               \
    "ldr r8, [r0], #4\n\t"                                                                         \
    "ldr r9, [r1], #4\n\t"                                                                         \
    "and r10, r7, r8, lsl #8\n\t"                                                                  \
    "and r8, r7, r8\n\t"                                                                           \
    "and r11, r7, r9, lsl #8\n\t"                                                                  \
    "and r9, r7, r9\n\t"                                                                           \
    "shsub16 r10, r10, r3\n\t"                                                                     \
    "shsub16 r8, r8, r3\n\t"                                                                       \
    "shsub16 r11, r11, r4\n\t"                                                                     \
    "shsub16 r9, r9, r4\n\t"                                                                       \
    "smultt r12, r10, r11\n\t"                                                                     \
    "smulbb r10, r10, r11\n\t"                                                                     \
    "smultt r11, r8, r9\n\t"                                                                       \
    "smulbb r8, r8, r9\n\t"                                                                        \
    "smmla r12, r12, r5, r6\n\t"                                                                   \
    "smmla r10, r10, r5, r6\n\t"                                                                   \
    "smmla r11, r11, r5, r6\n\t"                                                                   \
    "smmla r8, r8, r5, r6\n\t"                                                                     \
    "pkhtb r10, r12, r10, asr #16\n\t"                                                             \
    "pkhtb r8, r11, r8, asr #16\n\t"                                                               \
    "usat16 r10, #8, r10\n\t"                                                                      \
    "usat16 r8, #8, r8\n\t"                                                                        \
    "orr r10, r10, r8, lsl #8\n\t"                                                                 \
    "ldrd r8, r9, [sp]\n\t"                                                                        \
    "uqadd8 r10, r10, r8\n\t"                                                                      \
    "uadd8 r10, r10, r9\n\t"                                                                       \
    "str r10, [r2], #4\n\t"

#include "ferrule/kernels/product_fours.inc.h"
#endif

static void multiply(const struct ferrule_scaled_product_params *params, const int8_t *a,
                     const int8_t *b, int8_t *output, int32_t count)
{
    int32_t i = 0;

#if FERRULE_HAS_MVE
    i = count & ~1;
    multiply_pairs(params, a, b, output, i);
#elif FERRULE_HAS_DSP
    if (count > 3) {
        const uint32_t above = (uint32_t)(UINT8_MAX - (params->high - params->low));
        const uint32_t lowest = ((uint32_t)params->low - above) & UINT8_MAX;
        const struct fours fours = {
            a,
            b,
            output,
            ferrule_pair(-256 * params->first_offset, -256 * params->first_offset),
            ferrule_pair(-256 * params->second_offset, -256 * params->second_offset),
            params->multiplier,
            params->constant - params->low * (1 << FRACTION_BITS),
            UINT32_C(0xff00ff00),
            a + (count & ~3),
            above * UINT32_C(0x01010101),
            lowest * UINT32_C(0x01010101),
        };

        multiply_fours(&fours);
        i = count & ~3;
    }
#endif
    for (; i < count; ++i) {
        const int32_t product = (a[i] + params->first_offset) * (b[i] + params->second_offset);
        const int32_t scaled =
            ferrule_high_product_floor(product * (1 << PRODUCT_BITS), params->multiplier);

        output[i] = (int8_t)ferrule_clamp((scaled + params->constant) >> FRACTION_BITS, params->low,
                                          params->high);
    }
}

void ferrule_scaled_product_s8(const struct ferrule_scaled_product_params *params,
                               const int8_t *first, const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        multiply(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
