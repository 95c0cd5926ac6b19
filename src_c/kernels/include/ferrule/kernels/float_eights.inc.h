/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Float32 results of adjacent elements, eight or 16 at a time, for cores with an FPU. A file
 * defines these macros, then includes this file, which undefines them:
 *
 * FERRULE_EIGHTS         name of the function
 * FERRULE_LANE(x, y)     assembler that puts the result of registers s<x> and s<y> into s<x>, and
 *                        may change s<y>
 * FERRULE_VECTOR(x, y)   optional: the same with q<x> and q<y>
 *
 * A function takes the total of its results, too, which is finite only if each of them is: without
 * a macro FERRULE_TOTAL of 1, the total is 0.
 *
 * Vector instructions take subnormal numbers for 0, and tell so in two flags of FPSCR. Elements
 * after which a flag is set are computed without vectors, before anything is stored.
 */
#include "ferrule/kernels/float_pixels.h"

#ifndef FERRULE_TOTAL
#define FERRULE_TOTAL 0
#endif

#if FERRULE_HAS_VFP

#ifndef FERRULE_KERNELS_FLOAT_EIGHTS_H_INCLUDED
#define FERRULE_KERNELS_FLOAT_EIGHTS_H_INCLUDED

enum {
    FERRULE_EIGHT = 8,
    FERRULE_SIXTEEN = 16, /* elements of the vectors that are computed at once */
    FERRULE_SAME = FERRULE_HAS_MVE_FLOAT ? FERRULE_SIXTEEN : FERRULE_EIGHT
};

/** Elements of two inputs and an output; a stride is 1, or 0 for one element that is repeated. */
struct ferrule_eights {
    const float *first;
    int32_t first_stride;
    const float *second;
    int32_t second_stride;
    float *output;
    int32_t count;
    float total;
};

#define FERRULE_LANES_TOTAL_0
#define FERRULE_LANES_TOTAL_1                                                                      \
    "vadd.f32 s8, s0, s1\n\t"                                                                      \
    "vadd.f32 s9, s2, s3\n\t"                                                                      \
    "vadd.f32 s10, s4, s5\n\t"                                                                     \
    "vadd.f32 s11, s6, s7\n\t"                                                                     \
    "vadd.f32 s8, s8, s9\n\t"                                                                      \
    "vadd.f32 s10, s10, s11\n\t"                                                                   \
    "vadd.f32 %[total], %[total], s8\n\t"                                                          \
    "vadd.f32 %[total], %[total], s10\n\t"
#define FERRULE_VECTOR_TOTAL_0
#define FERRULE_VECTOR_TOTAL_1                                                                     \
    "vadd.f32 q4, q0, q1\n\t"                                                                      \
    "vadd.f32 q5, q2, q3\n\t"                                                                      \
    "vadd.f32 q7, q7, q4\n\t"                                                                      \
    "vadd.f32 q7, q7, q5\n\t"
#define FERRULE_JOINED(left, right)  FERRULE_JOINED_(left, right)
#define FERRULE_JOINED_(left, right) left##_##right

#endif

#if FERRULE_HAS_MVE_FLOAT && defined(FERRULE_VECTOR)

#define FERRULE_QUARTER(x, y, offset)                                                              \
    "vldrw.u32 q" #x ", [%[first], " offset "]\n\t"                                                \
    "vldrw.u32 q" #y ", [%[second], " offset "]\n\t" FERRULE_VECTOR(x, y)

/* Store all whole 16 elements up to those with a number that is too small for vectors. */
static void FERRULE_JOINED(FERRULE_EIGHTS, vectors)(struct ferrule_eights *at)
{
    float totals[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int32_t left = at->count - FERRULE_SIXTEEN;
    uint32_t state;
    uint32_t flags;

    __asm__ volatile(
        ".arch_extension mve.fp\n\t" /* compilers must not use it, see float_vectors.c */
        "vmrs %[state], fpscr\n\t"
        "bic %[flags], %[state], " FERRULE_TOO_SMALL_TEXT "\n\t"
        "vmsr fpscr, %[flags]\n\t"
        "vmov.i32 q7, #0\n\t"
        "1:\n\t" FERRULE_QUARTER(0, 4, "#0") FERRULE_QUARTER(1, 5, "#16") FERRULE_QUARTER(2, 4,
                                                                                          "#32")
            FERRULE_QUARTER(3, 5, "#48") "vmrs %[flags], fpscr\n\t"
                                         "tst %[flags], " FERRULE_TOO_SMALL_TEXT "\n\t"
                                         "bne 2f\n\t"
                                         "add %[first], %[first], %[first_step]\n\t"
                                         "add %[second], %[second], %[second_step]\n\t"
                                         "vstrw.32 q0, [%[output]], #16\n\t"
                                         "vstrw.32 q1, [%[output]], #16\n\t"
                                         "vstrw.32 q2, [%[output]], #16\n\t"
                                         "vstrw.32 q3, [%[output]], #16\n\t" FERRULE_JOINED(
                                             FERRULE_VECTOR_TOTAL,
                                             FERRULE_TOTAL) "subs %[left], %[left], #16\n\t"
                                                            "bge 1b\n\t"
                                                            "2:\n\t"
                                                            "vstrw.32 q7, [%[totals]]\n\t"
                                                            "vmrs %[flags], fpscr\n\t"
                                                            "orr %[flags], %[flags], %[state]\n\t"
                                                            "vmsr fpscr, %[flags]"
        : [first] "+r"(at->first), [second] "+r"(at->second), [output] "+r"(at->output),
          [left] "+r"(left), [state] "=&r"(state), [flags] "=&r"(flags)
        : [first_step] "r"(at->first_stride * 4 * FERRULE_SIXTEEN),
          [second_step] "r"(at->second_stride * 4 * FERRULE_SIXTEEN), [totals] "r"(totals)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s28", "s29", "s30",
          "s31", "cc", "memory");
    at->count = left + FERRULE_SIXTEEN;
    at->total += (totals[0] + totals[1]) + (totals[2] + totals[3]);
}

#undef FERRULE_QUARTER

#endif

/* Store `count` elements, a multiple of eight. */
static void FERRULE_JOINED(FERRULE_EIGHTS, scalars)(struct ferrule_eights *at, int32_t count)
{
    float total = at->total;

    at->count -= count;
    __asm__ volatile(
        "1:\n\t"
        "vldmia %[first], {s0-s7}\n\t"
        "vldmia %[second], {s8-s15}\n\t"
        "add %[first], %[first], %[first_step]\n\t"
        "add %[second], %[second], %[second_step]\n\t" FERRULE_LANE(0, 8) FERRULE_LANE(1, 9)
            FERRULE_LANE(2, 10) FERRULE_LANE(3, 11) FERRULE_LANE(4, 12) FERRULE_LANE(5, 13)
                FERRULE_LANE(6, 14)
                    FERRULE_LANE(7, 15) "vstmia %[output]!, {s0-s7}\n\t" FERRULE_JOINED(
                        FERRULE_LANES_TOTAL, FERRULE_TOTAL) "subs %[left], %[left], #8\n\t"
                                                            "bne 1b"
        : [first] "+r"(at->first), [second] "+r"(at->second), [output] "+r"(at->output),
          [left] "+r"(count), [total] "+t"(total)
        : [first_step] "r"(at->first_stride * 4 * FERRULE_EIGHT), [second_step] "r"(
                                                                      at->second_stride * 4 *
                                                                      FERRULE_EIGHT)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "cc", "memory");
    at->total = total;
}

/* Store elements while there are eight; `count` is the number of those left. */
static void FERRULE_EIGHTS(struct ferrule_eights *at)
{
    float same[FERRULE_SAME];

    if (at->count < FERRULE_EIGHT) {
        return;
    }
    if (at->first_stride == 0 || at->second_stride == 0) {
        const float **repeated = at->first_stride == 0 ? &at->first : &at->second;
        const float value = **repeated;

        for (int32_t i = 0; i < FERRULE_SAME; ++i) {
            same[i] = value;
        }
        *repeated = same;
    }
#if FERRULE_HAS_MVE_FLOAT && defined(FERRULE_VECTOR)
    while (at->count >= FERRULE_SIXTEEN) {
        FERRULE_JOINED(FERRULE_EIGHTS, vectors)(at);
        if (at->count >= FERRULE_SIXTEEN) { /* a number was too small */
            FERRULE_JOINED(FERRULE_EIGHTS, scalars)(at, FERRULE_SIXTEEN);
        }
    }
    if (at->count < FERRULE_EIGHT) {
        return;
    }
#endif
    FERRULE_JOINED(FERRULE_EIGHTS, scalars)(at, at->count / FERRULE_EIGHT * FERRULE_EIGHT);
}

#endif

#undef FERRULE_EIGHTS
#undef FERRULE_LANE
#undef FERRULE_VECTOR
#undef FERRULE_TOTAL
