/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/requantize.h"

/* One input is at the common scale, but for 2^19; only the other one is multiplied there. All
 * that enters a high product is doubled, since that of two int32 is rounded at 2^32. */
enum { EXACT_BITS = 20, OTHER_BITS = 21 };

static inline int8_t stored(const struct ferrule_rescaled_sum_params *params, int32_t a, int32_t b)
{
    const int32_t exact = (a + params->exact_offset) * params->exact_sign;
    const int32_t other = (b + params->other_offset) * ((int32_t)1 << OTHER_BITS);
    const int32_t term = ferrule_divide_by_power(
        ferrule_high_product_rounded(other, params->other_multiplier), -params->other_shift);
    const int32_t sum = exact * ((int32_t)1 << EXACT_BITS) + 2 * params->other_sign * term;
    const int32_t scaled = ferrule_divide_by_power(
        ferrule_high_product_rounded(sum, params->result.multiplier), -params->result.shift);

    return (int8_t)ferrule_clamp(scaled + params->result.zero_point, params->result.low,
                                 params->result.high);
}

#if FERRULE_HAS_MVE
/* In the order in which the assembler loads them. */
struct pairs {
    int32_t count;
    const int8_t *a;
    const int8_t *b;
    int8_t *output;
    int32_t exact_offset; /* times exact_step */
    int32_t other_offset; /* times 16 */
    int32_t multiplier;
    int32_t shift;
    int32_t sign;
    int32_t result_multiplier;
    int32_t result_shift;
    int32_t zero_point;
    int32_t exact_step;
    int32_t low;
    int32_t high;
};

/* An even number of elements, since lanes of 32 bits need the predicates of both halves. Halfwords
 * have 3 and 4 of the fractional bits, and the lanes the others. */
static void add_pairs(const struct pairs *pairs)
{
    register const struct pairs *r0 __asm__("r0") = pairs;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldrd r1, r2, [r0, #48]\n\t"
                     "ldr r3, [r0, #56]\n\t"
                     "movs r4, #16\n\t"
                     "vdup.16 q4, r1\n\t"
                     "vdup.16 q5, r4\n\t"
                     "vdup.16 q6, r2\n\t"
                     "vdup.16 q7, r3\n\t"
                     "ldr lr, [r0], #4\n\t"
                     "ldm r0, {r0-r10}\n\t"
                     "wlstp.16 lr, lr, 2f\n\t"
                     "1:\n\t"
                     "vldrb.s16 q1, [r1], #8\n\t"
                     "vldrb.s16 q0, [r0], #8\n\t"
                     "vmlas.s16 q1, q5, r4\n\t"
                     "vmlas.s16 q0, q4, r3\n\t"
                     "vshllb.s16 q2, q1, #16\n\t"
                     "vshllt.s16 q1, q1, #16\n\t"
                     "vshr.s32 q3, q2, #31\n\t"
                     "vqrdmlah.s32 q3, q2, r5\n\t"
                     "vrshl.s32 q3, r6\n\t"
                     "vshllb.s16 q2, q0, #16\n\t"
                     "vmla.s32 q2, q3, r7\n\t"
                     "vshr.s32 q3, q1, #31\n\t"
                     "vqrdmlah.s32 q3, q1, r5\n\t"
                     "vrshl.s32 q3, r6\n\t"
                     "vshllt.s16 q1, q0, #16\n\t"
                     "vmla.s32 q1, q3, r7\n\t"
                     "vshr.s32 q0, q2, #31\n\t"
                     "vqrdmlah.s32 q0, q2, r8\n\t"
                     "vshr.s32 q3, q1, #31\n\t"
                     "vqrdmlah.s32 q3, q1, r8\n\t"
                     "vrshl.s32 q0, r9\n\t"
                     "vrshl.s32 q3, r9\n\t"
                     "vqmovnb.s32 q0, q0\n\t"
                     "vqmovnt.s32 q0, q3\n\t"
                     "vqadd.s16 q0, q0, r10\n\t"
                     "vmax.s16 q0, q0, q6\n\t"
                     "vmin.s16 q0, q0, q7\n\t"
                     "vstrb.16 q0, [r2], #8\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0)
                     :
                     : "r1", "r2", "r3", "lr", "cc", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7",
                       "memory");
}
#elif FERRULE_HAS_DSP
/* In the order in which the assembler loads them. */
struct fours {
    int32_t other_offset; /* times 2^21 */
    int32_t multiplier;
    int32_t rounding;
    int32_t shift;
    int32_t constant; /* of the sum */
    int32_t result_multiplier;
    int32_t result_rounding; /* with the zero point less the lower limit */
    int32_t result_shift;
    const int8_t *end; /* of the first input */
    uint32_t exact;    /* all bits set where the first input counts with the other sign */
    uint32_t above;
    uint32_t lowest;
    const int8_t *a;
    const int8_t *b;
    int8_t *output;
    int32_t sign; /* twice that of the second input */
};

#define TERM(value, byte)                                                                          \
    "sxtb " value ", r12" byte "\n\t"                                                              \
    "add " value ", r3, " value ", lsl #21\n\t"                                                    \
    "smmlar lr, " value ", r4, r5\n\t"                                                             \
    "add " value ", lr, " value ", asr #31\n\t"                                                    \
    "asr " value ", " value ", r6\n\t"
#define RESULT(value, byte)                                                                        \
    "mla " value ", " value ", r7, r3\n\t"                                                         \
    "sxtb lr, r12" byte "\n\t"                                                                     \
    "add " value ", " value ", lr, lsl #20\n\t"                                                    \
    "smmlar lr, " value ", r4, r5\n\t"                                                             \
    "add " value ", lr, " value ", asr #31\n\t"                                                    \
    "asr " value ", " value ", r6\n\t"

/* Of a positive number of fours. Results above the lower limit are saturated to 8 bits without
 * sign; `above` then saturates those beyond the upper limit, and `lowest` adds the lower limit less
 * `above`, modulo 2^8. */
static void add_fours(const struct fours *fours)
{
    register const struct fours *r0 __asm__("r0") = fours;

    /* clang-format off */
    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r0!, {r1-r12}\n\t"
                     "push {r1-r12}\n\t"
                     "ldrd r2, r7, [r0, #8]\n\t"
                     "ldrd r0, r1, [r0]\n\t"
                     "1:\n\t"
                     "ldm sp, {r3-r6}\n\t"
                     "ldr r12, [r1], #4\n\t"
                     TERM("r8", "")
                     TERM("r9", ", ror #8")
                     TERM("r10", ", ror #16")
                     TERM("r11", ", ror #24")
                     "ldr r12, [r0], #4\n\t"
                     "ldr lr, [sp, #36]\n\t"
                     "eor r12, r12, lr\n\t"
                     "ldrd r3, r4, [sp, #16]\n\t"
                     "ldrd r5, r6, [sp, #24]\n\t"
                     RESULT("r8", "")
                     RESULT("r9", ", ror #8")
                     RESULT("r10", ", ror #16")
                     RESULT("r11", ", ror #24")
                     "ldrd r3, r4, [sp, #40]\n\t"
                     "ldr r5, [sp, #32]\n\t"
                     "pkhbt r8, r8, r10, lsl #16\n\t"
                     "pkhbt r9, r9, r11, lsl #16\n\t"
                     "usat16 r8, #8, r8\n\t"
                     "usat16 r9, #8, r9\n\t"
                     "orr r8, r8, r9, lsl #8\n\t"
                     "uqadd8 r8, r8, r3\n\t"
                     "uadd8 r8, r8, r4\n\t"
                     "str r8, [r2], #4\n\t"
                     "cmp r0, r5\n\t"
                     "bne 1b\n\t"
                     "add sp, sp, #48\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0)
                     :
                     : "r1", "r2", "r3", "r12", "lr", "cc", "memory");
    /* clang-format on */
}
#endif

static void add(const struct ferrule_rescaled_sum_params *params, const int8_t *a, const int8_t *b,
                int8_t *output, int32_t count)
{
    int32_t i = 0;

#if FERRULE_HAS_MVE
    if (params->result.shift < 0) {
        const int32_t step = params->exact_sign * 8;
        const struct pairs pairs = {
            count & ~1,
            a,
            b,
            output,
            params->exact_offset * step,
            params->other_offset * 16,
            params->other_multiplier,
            params->other_shift,
            params->other_sign,
            params->result.multiplier,
            params->result.shift,
            params->result.zero_point,
            step,
            params->result.low,
            params->result.high,
        };

        add_pairs(&pairs);
        i = count & ~1;
    }
#elif FERRULE_HAS_DSP
    const int32_t right = -params->result.shift;

    /* The results fit into 16 bits, and their zero point before the shift into 32. */
    if (right >= 15 && right <= 22 && count > 3) {
        const int32_t low = params->result.low;
        const uint32_t above = (uint32_t)(UINT8_MAX - (params->result.high - low));
        const uint32_t lowest = ((uint32_t)low - above) & UINT8_MAX;
        /* -a is the complement of a, plus 1. */
        const int32_t offset =
            params->exact_offset * params->exact_sign + (int32_t)(params->exact_sign < 0);
        const struct fours fours = {
            params->other_offset * ((int32_t)1 << OTHER_BITS),
            params->other_multiplier,
            (int32_t)1 << (-params->other_shift - 1),
            -params->other_shift,
            offset * ((int32_t)1 << EXACT_BITS),
            params->result.multiplier,
            (params->result.zero_point - low) * ((int32_t)1 << right) + ((int32_t)1 << (right - 1)),
            right,
            a + (count & ~3),
            params->exact_sign < 0 ? UINT32_MAX : 0u,
            above * UINT32_C(0x01010101),
            lowest * UINT32_C(0x01010101),
            a,
            b,
            output,
            2 * params->other_sign,
        };

        add_fours(&fours);
        i = count & ~3;
    }
#endif
    for (; i < count; ++i) {
        output[i] = stored(params, a[i], b[i]);
    }
}

void ferrule_rescaled_sum_s8(const struct ferrule_rescaled_sum_params *params, const int8_t *first,
                             const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        add(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
