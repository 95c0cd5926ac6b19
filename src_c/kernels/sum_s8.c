/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/blocks.h"
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"

enum { FRACTION_BITS = 20 };

static inline int8_t stored(const struct ferrule_scaled_sum_params *params, int32_t a, int32_t b)
{
    int64_t sum = params->constant + (((int64_t)params->first * a) >> 8);

    sum += ((int64_t)params->second * b) >> 8;
    return (int8_t)ferrule_saturate_s8((int32_t)sum >> FRACTION_BITS);
}

#if FERRULE_HAS_MVE
/* An even number of elements, since lanes of 32 bits need the predicates of both halves. The
 * doubled high product of 2^23 times an element is its product shifted by 8. The 4 bits of the
 * fraction that remain in halfwords, and the saturation, need no lanes of 32 bits. */
static void add_pairs(const struct ferrule_scaled_sum_params *params, const int8_t *a,
                      const int8_t *b, int8_t *output, int32_t count)
{
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n\t"
                     "1:\n\t"
                     "vldrb.s16 q0, [%[a]], #8\n\t"
                     "vldrb.s16 q1, [%[b]], #8\n\t"
                     "vshl.i16 q0, q0, #7\n\t"
                     "vshl.i16 q1, q1, #7\n\t"
                     "vshllb.s16 q2, q0, #16\n\t"
                     "vshllt.s16 q3, q0, #16\n\t"
                     "vdup.32 q4, %[constant]\n\t"
                     "vdup.32 q5, %[constant]\n\t"
                     "vqdmlah.s32 q4, q2, %[first]\n\t"
                     "vqdmlah.s32 q5, q3, %[first]\n\t"
                     "vshllb.s16 q2, q1, #16\n\t"
                     "vshllt.s16 q3, q1, #16\n\t"
                     "vqdmlah.s32 q4, q2, %[second]\n\t"
                     "vqdmlah.s32 q5, q3, %[second]\n\t"
                     "vshrnb.i32 q5, q4, #16\n\t" /* below the upper halves of the odd lanes */
                     "vshr.s16 q5, q5, #4\n\t"
                     "vqmovnb.s16 q5, q5\n\t"
                     "vstrb.16 q5, [%[output]], #8\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [a] "+l"(a), [b] "+l"(b), [output] "+l"(output)
                     : [count] "r"(count), [first] "r"(params->first), [second] "r"(params->second),
                       [constant] "r"(params->constant)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "memory");
}
#elif FERRULE_HAS_DSP
/* Four elements at a time; their bytes become the upper bytes of halfwords, that is 256 times as
 * large. */
struct fours {
    const int8_t *first;
    const int8_t *second;
    int8_t *output;
    int32_t factor;
    int32_t other_factor;
    int32_t constant;
    int32_t count; /* positive */
};

#define STEP                                                                                       \
    "ldr r8, [r0], #4\n\t"                                                                         \
    "ldr r10, [r1], #4\n\t"                                                                        \
    "and r9, r7, r8, lsl #8\n\t"                                                                   \
    "and r11, r7, r10, lsl #8\n\t"                                                                 \
    "and r8, r7, r8\n\t"                                                                           \
    "and r10, r7, r10\n\t"                                                                         \
    "smlawb r12, r3, r9, r5\n\t"                                                                   \
    "smlawb r14, r3, r8, r5\n\t"                                                                   \
    "smlawb r12, r4, r11, r12\n\t"                                                                 \
    "smlawb r14, r4, r10, r14\n\t"                                                                 \
    "smlawt r9, r3, r9, r5\n\t"                                                                    \
    "smlawt r8, r3, r8, r5\n\t"                                                                    \
    "smlawt r9, r4, r11, r9\n\t"                                                                   \
    "smlawt r8, r4, r10, r8\n\t"                                                                   \
    "ssat r12, #8, r12, asr #20\n\t"                                                               \
    "ssat r14, #8, r14, asr #20\n\t"                                                               \
    "ssat r9, #8, r9, asr #20\n\t"                                                                 \
    "ssat r8, #8, r8, asr #20\n\t"                                                                 \
    "strb r14, [r2, #1]\n\t"                                                                       \
    "strb r9, [r2, #2]\n\t"                                                                        \
    "strb r8, [r2, #3]\n\t"                                                                        \
    "strb r12, [r2], #4\n\t"

static void add_fours(const struct fours *fours)
{
    register const struct fours *r0 __asm__("r0") = fours;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldm r0, {r0-r6}\n\t"
                     "mov r7, #0xff00ff00\n\t"
                     "tst r6, #1\n\t"
                     "beq 1f\n\t"
                     "add r6, r6, #1\n\t"
                     "b 2f\n"
                     "1:\n\t" STEP "2:\n\t" STEP "subs r6, r6, #2\n\t"
                     "bne 1b\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0)
                     :
                     : "r1", "r2", "r3", "r12", "lr", "cc", "memory");
}
#endif

static void add(const struct ferrule_scaled_sum_params *params, const int8_t *a, const int8_t *b,
                int8_t *output, int32_t count)
{
    int32_t i = 0;

#if FERRULE_HAS_MVE
    i = count & ~1;
    add_pairs(params, a, b, output, i);
#elif FERRULE_HAS_DSP
    if (count > 3) {
        const struct fours fours = {
            a, b, output, params->first, params->second, params->constant, count / 4};

        add_fours(&fours);
        i = count & ~3;
    }
#endif
    for (; i < count; ++i) {
        output[i] = stored(params, a[i], b[i]);
    }
}

void ferrule_sum_s8(const struct ferrule_scaled_sum_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output)
{
    struct ferrule_blocks blocks;

    ferrule_blocks_begin(&blocks, &params->shape, first, second);
    while (ferrule_blocks_next(&blocks)) {
        add(params, blocks.first.elements, blocks.second.elements, output, blocks.count);
        output += blocks.count;
    }
}
