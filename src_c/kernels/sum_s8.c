/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/binary.h"
#include "ferrule/kernels/dual.h"

enum { FRACTION_BITS = 20 };

static inline int8_t stored(const struct ferrule_scaled_sum_params *params, int32_t a, int32_t b)
{
    int64_t sum = params->constant + (((int64_t)params->first * a) >> 8);

    sum += ((int64_t)params->second * b) >> 8;
    return (int8_t)ferrule_saturate_s8((int32_t)sum >> FRACTION_BITS);
}

#if FERRULE_HAS_DSP
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

void ferrule_sum_s8(const struct ferrule_scaled_sum_params *params, const int8_t *first,
                    const int8_t *second, int8_t *output)
{
    const int32_t extent = params->shape.extents[FERRULE_BROADCAST_INNER];
    const int32_t first_stride = params->shape.first_strides[FERRULE_BROADCAST_INNER];
    const int32_t second_stride = params->shape.second_strides[FERRULE_BROADCAST_INNER];
    struct ferrule_broadcast_row row = {0};

    do {
        const int8_t *a = &first[row.first];
        const int8_t *b = &second[row.second];
        int32_t i = 0;

#if FERRULE_HAS_DSP
        if (first_stride == 1 && second_stride == 1 && extent > 3) {
            struct fours fours = {
                a, b, output, params->first, params->second, params->constant, extent / 4};

            add_fours(&fours);
            i = extent & ~3;
        }
#endif
        for (; i < extent; ++i) {
            output[i] = stored(params, a[i * first_stride], b[i * second_stride]);
        }
        output += extent;
    } while (ferrule_broadcast_next(&params->shape, &row));
}
