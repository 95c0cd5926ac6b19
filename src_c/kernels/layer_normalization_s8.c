/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/dual.h"
#include "ferrule/kernels/inverse_sqrt.h"
#include "ferrule/kernels/mve.h"
#include "ferrule/kernels/normalize.h"

enum { FRACTION = 1 << 16 }; /* of the variance times depth^2 */

/* The exact sums of a row. */
struct sums {
    int32_t total;
    int32_t squares;
};

static struct sums sums_of(const int8_t *input, int32_t depth)
{
    struct sums sums = {0, 0};

#if FERRULE_HAS_MVE
    __asm__ volatile("wlstp.8 lr, %[depth], 2f\n\t"
                     "1:\n\t"
                     "vldrb.s8 q0, [%[input]], #16\n\t"
                     "vaddva.s8 %[total], q0\n\t"
                     "vmladava.s8 %[squares], q0, q0\n\t"
                     "letp lr, 1b\n\t"
                     "2:\n\t"
                     : [input] "+l"(input), [total] "+Te"(sums.total), [squares] "+Te"(sums.squares)
                     : [depth] "r"(depth)
                     : "lr", "q0", "memory");
#else
    int32_t i = 0;
#if FERRULE_HAS_DSP
    uint32_t total = 0u;
    uint32_t squares = 0u;

    for (; i < depth - 3; i += 4) {
        const uint32_t word = ferrule_load_word(&input[i]);
        const uint32_t even = ferrule_even_bytes(word);
        const uint32_t odd = ferrule_odd_bytes(word);

        total = ferrule_dual_multiply_add(even, 0x00010001u, total);
        total = ferrule_dual_multiply_add(odd, 0x00010001u, total);
        squares = ferrule_dual_multiply_add(even, even, squares);
        squares = ferrule_dual_multiply_add(odd, odd, squares);
    }
    sums.total = (int32_t)total;
    sums.squares = (int32_t)squares;
#endif
    for (; i < depth; ++i) {
        sums.total += input[i];
        sums.squares += input[i] * input[i];
    }
#endif
    return sums;
}

/* What a row's values become before the gains: (value * slope + shifted) * root / 2^32. */
struct normal {
    int32_t slope; /* modulo 2^32, as shifted */
    int32_t shifted;
    int32_t root;
};

static struct normal normal_of(const struct ferrule_layer_normalization_s8_params *params,
                               struct sums sums)
{
    const int64_t added =
        (int64_t)params->epsilon * (int64_t)((uint64_t)1 << params->epsilon_shift);
    const int64_t exact = (int64_t)params->depth * sums.squares - (int64_t)sums.total * sums.total;
    int64_t variance = exact * FRACTION + added;
    int32_t left = params->headroom;
    int32_t shift;

    if (variance < FRACTION) {
        variance = FRACTION; /* all values are equal */
    }
    while (variance >= (int64_t)1 << 29) {
        variance /= 4;
        --left;
    }

    int32_t scaled = (int32_t)variance;

    while (scaled < (int32_t)1 << 27) {
        scaled *= 4;
        ++left;
    }

    const struct normal normal = {
        (int32_t)((uint32_t)params->depth << left),
        (int32_t)(0u - ((uint32_t)sums.total << left)),
        4 * ferrule_inverse_sqrt(scaled, &shift), /* the shift is the same for all such numbers */
    };

    return normal;
}

static void store_row(const struct ferrule_layer_normalization_s8_params *params,
                      const struct normal *normal, const int8_t *input, int8_t *output)
{
    const int32_t *gains = params->gains;
    const int32_t *offsets = params->offsets;
#if FERRULE_HAS_MVE

    __asm__ volatile(
        "vdup.32 q3, %[slope]\n\t"
        "vdup.32 q4, %[root]\n\t"
        "wlstp.32 lr, %[depth], 2f\n\t"
        "1:\n\t"
        "vldrb.s32 q0, [%[input]], #4\n\t"
        "vldrw.u32 q1, [%[gains]], #16\n\t"
        "vmlas.s32 q0, q3, %[shifted]\n\t"
        "vldrw.u32 q2, [%[offsets]], #16\n\t"
        "vrmulh.s32 q0, q0, q4\n\t"
        "vrmulh.s32 q0, q0, q1\n\t"
        "vadd.i32 q0, q0, q2\n\t"
        "vshl.s32 q0, %[shift]\n\t"
        "vqmovnb.s32 q0, q0\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "vstrb.32 q0, [%[output]], #4\n\t"
        "letp lr, 1b\n\t"
        "2:\n\t"
        : [input] "+l"(input), [output] "+l"(output), [gains] "+r"(gains), [offsets] "+r"(offsets)
        : [depth] "r"(params->depth), [slope] "r"(normal->slope), [shifted] "r"(normal->shifted),
          [root] "r"(normal->root), [shift] "r"(-params->shift)
        : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
#else
    const int8_t *end = input + params->depth;
    const uint32_t slope = (uint32_t)normal->slope;
    const uint32_t shifted = (uint32_t)normal->shifted;
    const int32_t root = normal->root;
    const int32_t shift = params->shift;

    while (input < end) {
        const int32_t centred = (int32_t)((uint32_t)*input++ * slope + shifted);
        const int32_t value = ferrule_high_product(ferrule_high_product(centred, root), *gains++);

        *output++ = (int8_t)ferrule_saturate_s8((value + *offsets++) >> shift);
    }
#endif
}

void ferrule_layer_normalization_s8(const struct ferrule_layer_normalization_s8_params *params,
                                    const int8_t *input, int8_t *output)
{
    for (int32_t r = 0; r < params->rows; ++r) {
        const struct normal normal = normal_of(params, sums_of(input, params->depth));

        store_row(params, &normal, input, output);
        input += params->depth;
        output += params->depth;
    }
}
