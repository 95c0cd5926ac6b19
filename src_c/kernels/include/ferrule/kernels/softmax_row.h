/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by the softmax kernels with int8 input; internal to the kernels. */
#ifndef FERRULE_KERNELS_SOFTMAX_ROW_H
#define FERRULE_KERNELS_SOFTMAX_ROW_H

#include <stdbool.h>

#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/reciprocal.h"
#include "ferrule/kernels/softmax.h"

struct ferrule_softmax_row {
    int32_t offset; /* from an element to its place in the table, which is 0 if that is negative */
    int32_t scale;  /* 1 / sum of the exponentials in Q0, times 2^over_unit */
    int32_t shift;  /* to the right, of the scaled exponentials; 2 to 31 */
};

static inline int32_t ferrule_softmax_maximum(const int8_t *input, int32_t depth)
{
#if FERRULE_HAS_MVE
    int32_t maximum = INT8_MIN;

    __asm__ volatile("wlstp.8 lr, %[depth], 2f\n\t"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[input]], #16\n\t"
                     "vmaxv.s8 %[maximum], q0\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [input] "+r"(input), [maximum] "+r"(maximum)
                     : [depth] "r"(depth)
                     : "lr", "q0", "memory");
    return maximum;
#else
    int32_t maximum = INT8_MIN;
    int32_t i = 0;

#if FERRULE_HAS_DSP
    if (depth > 3) {
        uint32_t words = ferrule_load_word(input);

        for (i = 4; i < depth - 3; i += 4) {
            words = ferrule_larger_bytes(words, ferrule_load_word(&input[i]));
        }
        words = ferrule_larger_bytes(words, words >> 16);
        words = ferrule_larger_bytes(words, words >> 8);
        maximum = (int8_t)words;
    }
#endif
    for (; i < depth; ++i) {
        maximum = input[i] > maximum ? input[i] : maximum;
    }
    return maximum;
#endif
}

static inline int32_t ferrule_softmax_exponential(const int32_t *exponentials, int32_t offset,
                                                  int32_t element)
{
    int32_t index = element + offset;

    return exponentials[index < 0 ? 0 : index];
}

/* Returns the sum of the exponentials in Q12; unsigned, so that it can hold a sum of 8191 ones. */
static inline uint32_t ferrule_softmax_sum(const struct ferrule_softmax_s8_params *params,
                                           const int8_t *input, int32_t offset)
{
#if FERRULE_HAS_MVE
    register uint32_t sum __asm__("r12") = 0; /* an even register */

    __asm__ volatile(
        "vmov.i32 q2, #0\n\t"
        "wlstp.32 lr, %[depth], 2f\n\t"
        "1:\n\t"
        "vldrb.s32 q0, [%[input]], #4\n\t"
        "vadd.i32 q0, q0, %[offset]\n\t"
        "vmax.s32 q0, q0, q2\n\t"
        "vldrw.u32 q1, [%[table], q0, uxtw #2]\n\t"
        "vrshr.u32 q1, q1, #12\n\t"
        "vaddva.u32 %[sum], q1\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [input] "+l"(input), [sum] "+r"(sum)
        : [depth] "r"(params->depth), [offset] "r"(offset), [table] "r"(params->exponentials)
        : "lr", "q0", "q1", "q2", "memory");
#else
    const int32_t *exponentials = params->exponentials;
    uint32_t sum = 0;
    int32_t left = params->depth;

    for (; left > 1; left -= 2) { /* two are faster at a time */
        sum +=
            ((uint32_t)ferrule_softmax_exponential(exponentials, offset, input[0]) + 2048u) >> 12;
        sum +=
            ((uint32_t)ferrule_softmax_exponential(exponentials, offset, input[1]) + 2048u) >> 12;
        input += 2;
    }
    if (left > 0) {
        sum += ((uint32_t)ferrule_softmax_exponential(exponentials, offset, *input) + 2048u) >> 12;
    }
#endif
    return sum;
}

/* Returns the values from which the elements of a row are computed, as multiples of 2^-bits. */
static inline struct ferrule_softmax_row
ferrule_softmax_row(const struct ferrule_softmax_s8_params *params, const int8_t *input,
                    int32_t bits)
{
    struct ferrule_softmax_row row;
    int32_t over_unit;

    row.offset = params->count - ferrule_softmax_maximum(input, params->depth);
    row.scale = ferrule_reciprocal(ferrule_softmax_sum(params, input, row.offset), 12, &over_unit);
    row.shift = over_unit + 31 - bits;
    if (row.shift > 31) { /* scaled exponentials are below 2^31, so that all results are 0 */
        row.scale = 0;
        row.shift = 31;
    }
    return row;
}

/* Returns an element as a non-negative number. The high product and the shift both round halves up,
 * so that they are a single shift of the product of 64 bits, plus half of the last place of each.
 */
static inline int32_t ferrule_softmax_element(const struct ferrule_softmax_row *row,
                                              int32_t exponential)
{
#if FERRULE_SHORT_MULTIPLY
    uint32_t product = (uint32_t)ferrule_high_multiply(row->scale, exponential);

    return (int32_t)((product + (UINT32_C(1) << (row->shift - 1))) >> row->shift);
#else
    const int64_t halves = ((int64_t)1 << (30 + row->shift)) + (1 << 30);
    const int64_t product = (int64_t)row->scale * exponential + halves;

    return (int32_t)(product >> 32) >> (row->shift - 1);
#endif
}

#if FERRULE_HAS_MVE
/* The assembler that stores the elements of a row; `store` stores q0 as numbers of another size.
 * The last step of `from` and `to` may lead beyond the row. */
#define FERRULE_SOFTMAX_STORE(store, row, params, from, to, lowest)                                \
    __asm__ volatile("vmov.i32 q2, #0\n\t"                                                         \
                     "vmvn.i32 q3, #0\n\t"                                                         \
                     "vsub.i32 q3, q3, %[least]\n\t"                                               \
                     "wlstp.32 lr, %[depth], 2f\n\t"                                               \
                     "1:\n\t"                                                                      \
                     "vldrb.s32 q0, [%[source]], #4\n\t"                                           \
                     "vadd.i32 q0, q0, %[offset]\n\t"                                              \
                     "vmax.s32 q0, q0, q2\n\t"                                                     \
                     "vldrw.u32 q1, [%[table], q0, uxtw #2]\n\t"                                   \
                     "vqrdmulh.s32 q0, q1, %[scale]\n\t"                                           \
                     "vrshl.u32 q0, %[left]\n\t"                                                   \
                     "vadd.i32 q0, q0, %[least]\n\t"                                               \
                     "vmin.s32 q0, q0, q3\n\t" store "letp lr, 1b\n\t"                             \
                     "2:\n\t"                                                                      \
                     : [source] "+l"(from), [target] "+l"(to)                                      \
                     : [depth] "r"((params)->depth), [offset] "r"((row)->offset),                  \
                       [table] "r"((params)->exponentials), [scale] "r"((row)->scale),             \
                       [left] "r"(-(row)->shift), [least] "r"(lowest)                              \
                     : "lr", "q0", "q1", "q2", "q3", "memory")
#endif

#endif
