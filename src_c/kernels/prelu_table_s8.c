/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/rectify.h"
#include "ferrule/kernels/sum.h"

#if FERRULE_HAS_MVE
/* An even number of elements, since lanes of 32 bits need the predicates of both halves. The
 * table has the result of 0 for all values below it, to which their product adds. */
static void rectify_pairs(const struct ferrule_prelu_table_params *params, const int8_t *a,
                          const int8_t *b, int8_t *output, int32_t count)
{
    const int32_t offsets[] = {params->input_offset, params->alpha_offset};

    __asm__ volatile(
        "ldr lr, [%[offsets]]\n\t"
        "vdup.16 q6, lr\n\t"
        "ldr lr, [%[offsets], #4]\n\t"
        "vdup.16 q7, lr\n\t"
        "vmov.i16 q4, #0\n\t"
        "wlstp.16 lr, %[count], 2f\n\t"
        "1:\n\t"
        "vldrb.s16 q0, [%[a]], #8\n\t"
        "vldrb.s16 q1, [%[b]], #8\n\t"
        "vadd.i16 q0, q0, q6\n\t"
        "vadd.i16 q1, q1, q7\n\t"
        "vmax.s16 q2, q0, q4\n\t"
        "vmin.s16 q0, q0, q4\n\t"
        "vldrb.s16 q5, [%[table], q2]\n\t"
        "vmullb.s16 q2, q0, q1\n\t"
        "vmullt.s16 q3, q0, q1\n\t"
        "vshr.s32 q0, q2, #31\n\t"
        "vshr.s32 q1, q3, #31\n\t"
        "vqrdmlah.s32 q0, q2, %[multiplier]\n\t"
        "vqrdmlah.s32 q1, q3, %[multiplier]\n\t"
        "vrshl.s32 q0, %[shift]\n\t"
        "vrshl.s32 q1, %[shift]\n\t"
        "vmovnt.i32 q0, q1\n\t" /* each fits into 16 bits */
        "vqadd.s16 q0, q0, q5\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "vstrb.16 q0, [%[output]], #8\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [a] "+l"(a), [b] "+l"(b), [output] "+l"(output)
        : [count] "r"(count), [multiplier] "r"(params->multiplier), [shift] "r"(params->shift),
          [table] "l"(params->table), [offsets] "r"(offsets)
        : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory");
}
#elif FERRULE_HAS_DSP
struct fours {
    const int8_t *a;
    const int8_t *b;
    int8_t *output;
    int32_t input_offset;
    const int8_t *table;
    int32_t alpha_offset; /* twice */
    int32_t multiplier;
    int32_t rounding; /* with the zero point */
    int32_t right;
    const int8_t *end; /* of the first input */
};

/* One element: a look-up, or a product. */
#define ELEMENT(place)                                                                             \
    "ldrsb r8, [r0], #1\n\t"                                                                       \
    "adds r8, r8, r3\n\t"                                                                          \
    "bpl 2f\n\t"                                                                                   \
    "ldrsb r9, [r1, #" place "]\n\t"                                                               \
    "add r9, r5, r9, lsl #1\n\t"                                                                   \
    "mul r9, r9, r8\n\t"                                                                           \
    "smmlar r10, r9, r6, r7\n\t"                                                                   \
    "add r10, r10, r9, asr #31\n\t"                                                                \
    "asr r10, r10, r12\n\t"                                                                        \
    "ssat r10, #8, r10\n\t"                                                                        \
    "strb r10, [r2], #1\n\t"                                                                       \
    "b 3f\n"                                                                                       \
    "2:\n\t"                                                                                       \
    "ldrb r10, [r4, r8]\n\t"                                                                       \
    "strb r10, [r2], #1\n"                                                                         \
    "3:\n\t"

/* Of a positive number of fours. */
static void rectify_fours(const struct fours *fours)
{
    register const struct fours *r0 __asm__("r0") = fours;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldrd r12, lr, [r0, #32]\n\t"
                     "ldm r0, {r0-r7}\n"
                     "1:\n\t" ELEMENT("0") ELEMENT("1") ELEMENT("2")
                         ELEMENT("3") "add r1, r1, #4\n\t"
                                      "cmp r0, lr\n\t"
                                      "bne 1b\n\t"
                                      "pop {r4-r11}"
                     : "+r"(r0)
                     :
                     : "r1", "r2", "r3", "r12", "lr", "cc", "memory");
}
#endif

static void rectify(const struct ferrule_prelu_table_params *params, const int8_t *a,
                    const int8_t *b, int8_t *output, int32_t count)
{
    const int32_t right = -params->shift;
    int32_t i = 0;

#if FERRULE_HAS_MVE
    i = count & ~1;
    rectify_pairs(params, a, b, output, i);
#elif FERRULE_HAS_DSP
    if (count > 3) {
        const struct fours fours = {
            a,
            b,
            output,
            params->input_offset,
            params->table,
            2 * params->alpha_offset,
            params->multiplier,
            params->table[0] * ((int32_t)1 << right) + ((int32_t)1 << (right - 1)),
            right,
            a + (count & ~3),
        };

        rectify_fours(&fours);
        i = count & ~3;
    }
#endif
    for (; i < count; ++i) {
        const int32_t value = a[i] + params->input_offset;

        if (value >= 0) {
            output[i] = params->table[value];
        } else {
            const int32_t product = value * (b[i] + params->alpha_offset);

            output[i] = (int8_t)ferrule_saturate_s8(
                ferrule_rescaled_product(product, params->multiplier, right) + params->table[0]);
        }
    }
}

void ferrule_prelu_table_s8(const struct ferrule_prelu_table_params *params, const int8_t *input,
                            const int8_t *alpha, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, input, alpha);
    while (ferrule_blocks_next(&blocks)) {
        rectify(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
