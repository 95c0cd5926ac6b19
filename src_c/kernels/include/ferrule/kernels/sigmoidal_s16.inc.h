/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The body of a kernel of int16 that interpolates the table of the sigmoid: a pair of
 * elements at a time with the DSP extension, and eight with vectors (MVE). A kernel's source file
 * defines these macros, then includes this file:
 *
 * FERRULE_KERNEL      name of the kernel
 * FERRULE_BITS        binary logarithm of the steps per entry of the table
 * FERRULE_SHIFT       to the right, of interpolated values, which are entries times steps
 * FERRULE_MIDDLE      the result at 0
 * FERRULE_VECTOR_SLOPE, FERRULE_VECTOR_SUM assembler that adds the product of the fractions in q3
 *                     and the slopes in q7 to the entries in q1, rounds to results, and leaves
 * these in q1, less the middle
 *
 * The function less its middle is odd. Halves are rounded up above 0 and down below. Each element
 * is read before the element at the same place is written, and never after.
 */
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/nonlinear.h"

enum {
    ENTRIES = 256,   /* of the table, in either direction */
    VECTOR_ITEMS = 8 /* of int16 */
};

#if FERRULE_HAS_MVE

/* Compute blocks of 8 elements, at least one. The magnitude times 2^(16 - bits) has the index of
 * the entry in its high half, and the fraction in its low half. */
static void compute_blocks(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                           int16_t *output, int32_t blocks)
{
    const int16_t *table = &params->table[ENTRIES];
    const int16_t *next = &table[1];

    __asm__ volatile("vdup.16 q4, %[multiplier]\n\t"
                     "vmov.i16 q5, #255\n\t"
                     "dls lr, %[blocks]\n\t"
                     "1:\n\t"
                     "vldrh.u16 q0, [%[input]], #16\n\t"
                     "vmullb.s16 q1, q0, q4\n\t"
                     "vmullt.s16 q2, q0, q4\n\t"
                     "vrshl.s32 q1, %[shift]\n\t"
                     "vrshl.s32 q2, %[shift]\n\t"
                     "vabs.s32 q1, q1\n\t"
                     "vabs.s32 q2, q2\n\t"
                     "vqshl.s32 q1, q1, %[up]\n\t"
                     "vqshl.s32 q2, q2, %[up]\n\t"
                     "vmov q3, q1\n\t"
                     "vmovnt.i32 q3, q2\n\t"
                     "vshrnb.i32 q2, q1, #16\n\t"
                     "vmin.u16 q2, q2, q5\n\t"
                     "vldrh.u16 q1, [%[table], q2, uxtw #1]\n\t"
                     "vldrh.u16 q7, [%[next], q2, uxtw #1]\n\t"
                     "vsub.i16 q7, q7, q1\n\t" FERRULE_VECTOR_SLOPE FERRULE_VECTOR_SUM
                     "vpt.s16 lt, q0, zr\n\t"
                     "vnegt.s16 q1, q1\n\t"
                     "vadd.i16 q1, q1, %[middle]\n\t"
                     "vstrh.16 q1, [%[output]], #16\n\t"
                     "le lr, 1b\n\t"
                     : [input] "+l"(input), [output] "+l"(output)
                     : [blocks] "r"(blocks), [table] "r"(table), [next] "r"(next),
                       [multiplier] "r"(params->multiplier), [shift] "r"(-params->shift),
                       [up] "i"(16 - FERRULE_BITS), [middle] "r"(FERRULE_MIDDLE)
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q7", "memory");
}

void FERRULE_KERNEL(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                    int16_t *output)
{
    const int32_t blocks = params->elements / VECTOR_ITEMS;
    const int32_t done = blocks * VECTOR_ITEMS;
    const int32_t rest = params->elements - done;
    int16_t last[VECTOR_ITEMS] = {0};

    if (blocks > 0) {
        compute_blocks(params, input, output, blocks);
    }
    if (rest > 0) {
        ferrule_mve_copy((int8_t *)last, (const int8_t *)&input[done], 2 * rest);
        compute_blocks(params, last, last, 1);
        ferrule_mve_copy((int8_t *)&output[done], (const int8_t *)last, 2 * rest);
    }
}

#else

enum {
    TABLE_BITS = 8 + FERRULE_BITS, /* of positions in the table, in either direction */
    HALF = INT32_C(1) << (FERRULE_SHIFT - 1),
    START = FERRULE_MIDDLE * (INT32_C(1) << FERRULE_SHIFT) + HALF
};

static inline int32_t saturated(int32_t position)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    int32_t result;

    __asm__("ssat %0, %1, %2" : "=r"(result) : "i"(TABLE_BITS + 1), "r"(position) : "cc");
    return result;
#else
    return ferrule_clamp(position, -(1 << TABLE_BITS), (1 << TABLE_BITS) - 1);
#endif
}

#if FERRULE_HAS_DSP

/* The interpolated value at a position, before the shift. */
static inline int32_t value_at(const int16_t *middle, int32_t position)
{
    const int32_t at = saturated(position);
    const uint32_t entries = ferrule_load_word((const int8_t *)&middle[at >> FERRULE_BITS]);
    const int32_t fraction = at & ((1 << FERRULE_BITS) - 1);
    uint32_t weights;

    /* the fraction in the high half, what it leaves of a step in the low one */
    __asm__("mla %0, %1, %2, %3"
            : "=r"(weights)
            : "r"(fraction), "r"(UINT16_MAX), "r"(1 << FERRULE_BITS));
    return (int32_t)ferrule_dual_multiply_add(entries, weights,
                                              (uint32_t)(START + (at >> TABLE_BITS)));
}

#endif

void FERRULE_KERNEL(const struct ferrule_sigmoid_s16_params *params, const int16_t *input,
                    int16_t *output)
{
    const int16_t *middle = &params->table[ENTRIES];
    const int32_t multiplier = params->multiplier;
    const int32_t shift = params->shift;
    const int32_t rounding = (int32_t)((UINT32_C(1) << shift) >> 1);
    int32_t left = params->elements;

#if FERRULE_HAS_DSP
    for (; left > 1; left -= 2) {
        uint32_t word;
        int32_t high;

        FERRULE_COPY_WORD(&word, input);
        __asm__("smlatb %0, %1, %2, %3" : "=r"(high) : "r"(word), "r"(multiplier), "r"(rounding));

        const int32_t low =
            (int32_t)ferrule_low_low_multiply_add(word, (uint32_t)multiplier, (uint32_t)rounding);
        const int32_t first = value_at(middle, low >> shift);
        const int32_t second = value_at(middle, high >> shift);

        __asm__("pkhtb %0, %1, %2, asr %3"
                : "=r"(word)
                : "r"((uint32_t)second << (16 - FERRULE_SHIFT)), "r"(first), "i"(FERRULE_SHIFT));
        FERRULE_COPY_WORD(output, &word);
        input += 2;
        output += 2;
    }
#endif
    for (; left > 0; --left) {
        const int32_t at = saturated((*input++ * multiplier + rounding) >> shift);
        const int16_t *entry = &middle[at >> FERRULE_BITS];
        const int32_t fraction = at & ((1 << FERRULE_BITS) - 1);
        const int32_t value = entry[0] * (1 << FERRULE_BITS) + fraction * (entry[1] - entry[0]) +
                              START + (at >> TABLE_BITS);

        *output++ = (int16_t)(value >> FERRULE_SHIFT);
    }
}

#endif
