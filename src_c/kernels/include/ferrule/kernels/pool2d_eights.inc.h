/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Windows of eight channels of `ferrule/kernels/pool2d.inc.h` in float32, for cores with an
 * FPU. Internal to the kernels.
 *
 * Vector instructions take subnormal numbers for 0, and tell so in two flags of FPSCR. Channels
 * after which a flag is set are computed without vectors, before anything is stored.
 */
#include <stdbool.h>

#define ROWS_OF(tap)                                                                               \
    "1:\n\t"                                                                                       \
    "mov %[left], %[columns]\n\t"                                                                  \
    "2:\n\t" tap "add %[pixel], %[pixel], %[step]\n\t"                                             \
    "subs %[left], %[left], #1\n\t"                                                                \
    "bne 2b\n\t"                                                                                   \
    "add %[pixel], %[pixel], %[to_next_row]\n\t"                                                   \
    "subs %[rows], %[rows], #1\n\t"                                                                \
    "bne 1b\n\t"
#define TAP                                                                                        \
    "vldmia %[pixel], {s8-s15}\n\t" FERRULE_LANE(0, 8) FERRULE_LANE(1, 9) FERRULE_LANE(2, 10)      \
        FERRULE_LANE(3, 11) FERRULE_LANE(4, 12) FERRULE_LANE(5, 13) FERRULE_LANE(6, 14)            \
            FERRULE_LANE(7, 15)
#define VECTOR_TAP                                                                                 \
    "vldrw.u32 q2, [%[pixel]]\n\t"                                                                 \
    "vldrw.u32 q3, [%[pixel], #16]\n\t" FERRULE_VECTOR(0, 2) FERRULE_VECTOR(1, 3)

/* Complete the values, add them to the total and store them. */
#define DIVIDE_EIGHT                                                                               \
    "vdiv.f32 s0, s0, %[count]\n\t"                                                                \
    "vdiv.f32 s1, s1, %[count]\n\t"                                                                \
    "vdiv.f32 s2, s2, %[count]\n\t"                                                                \
    "vdiv.f32 s3, s3, %[count]\n\t"                                                                \
    "vdiv.f32 s4, s4, %[count]\n\t"                                                                \
    "vdiv.f32 s5, s5, %[count]\n\t"                                                                \
    "vdiv.f32 s6, s6, %[count]\n\t"                                                                \
    "vdiv.f32 s7, s7, %[count]\n\t"
#define STORE_EIGHT                                                                                \
    FERRULE_LAST_EIGHT                                                                             \
    "vstmia %[output], {s0-s7}\n\t"                                                                \
    "vadd.f32 s8, s0, s1\n\t"                                                                      \
    "vadd.f32 s9, s2, s3\n\t"                                                                      \
    "vadd.f32 s10, s4, s5\n\t"                                                                     \
    "vadd.f32 s11, s6, s7\n\t"                                                                     \
    "vadd.f32 s8, s8, s9\n\t"                                                                      \
    "vadd.f32 s10, s10, s11\n\t"                                                                   \
    "vadd.f32 %[total], %[total], s8\n\t"                                                          \
    "vadd.f32 %[total], %[total], s10\n\t"

#if FERRULE_HAS_MVE_FLOAT

/* Return false, and store nothing, if a number is too small for vectors. */
static bool store_vectors(struct pixels *pixels, const float *pixel, float *output)
{
    int32_t rows = pixels->rows;
    int32_t left;
    uint32_t state;
    uint32_t flags;
    float total = pixels->total;

    __asm__ volatile(
        ".arch_extension mve.fp\n\t" /* compilers must not use it */
        "vmrs %[state], fpscr\n\t"
        "bic %[flags], %[state], " FERRULE_TOO_SMALL_TEXT "\n\t"
        "vmsr fpscr, %[flags]\n\t"
        "vldrw.u32 q0, [%[start]]\n\t"
        "vldrw.u32 q1, [%[start], #16]\n\t" ROWS_OF(
            VECTOR_TAP) "vmrs %[flags], fpscr\n\t"
                        "orr %[state], %[state], %[flags]\n\t"
                        "vmsr fpscr, %[state]\n\t"
                        "tst %[flags], " FERRULE_TOO_SMALL_TEXT "\n\t"
                        "bne 3f\n\t" STORE_EIGHT "3:"
        : [pixel] "+r"(pixel), [rows] "+r"(rows), [left] "=&r"(left), [state] "=&r"(state),
          [flags] "=&r"(flags), [total] "+t"(total)
        : [columns] "r"(pixels->columns), [step] "r"(pixels->step * 4),
          [to_next_row] "r"(pixels->to_next_row * 4), [output] "r"(output),
          [start] "r"(pixels->start), [count] "t"((float)(pixels->rows * pixels->columns))
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "cc", "memory");
    pixels->total = total;
    return (flags & FERRULE_TOO_SMALL) == 0;
}

#endif

static void store_eight(struct pixels *pixels, const float *pixel, float *output)
{
    int32_t rows = pixels->rows;
    int32_t left;
    float total = pixels->total;

#if FERRULE_HAS_MVE_FLOAT
    if (store_vectors(pixels, pixel, output)) {
        return;
    }
#endif
    __asm__ volatile(
        "vldmia %[start], {s0-s7}\n\t" ROWS_OF(TAP) STORE_EIGHT
        : [pixel] "+r"(pixel), [rows] "+r"(rows), [left] "=&r"(left), [total] "+t"(total)
        : [columns] "r"(pixels->columns), [step] "r"(pixels->step * 4),
          [to_next_row] "r"(pixels->to_next_row * 4), [output] "r"(output),
          [start] "r"(pixels->start), [count] "t"((float)(pixels->rows * pixels->columns))
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",
          "s14", "s15", "cc", "memory");
    pixels->total = total;
}
