/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_blocks.inc.h"

#if FERRULE_HAS_MVE_FLOAT

#define UNUSED __attribute__((unused))

/*
 * Vectors of four channels. Vector instructions take subnormal numbers for 0, and tell so in two
 * flags of FPSCR: underflow and a subnormal operand. Pixels after which a flag is set are computed
 * again without vectors.
 *
 * LT and LE hold for NaN, so that only GT is used.
 */

#define VMAC(sum, weights, product, x)                                                             \
    "vmul.f32 " product ", " weights ", " x "\n\t"                                                 \
    "vadd.f32 " sum ", " sum ", " product "\n\t"
#define VMAC2(sum, next, x)                                                                        \
    "vmul.f32 q6, q4, " x "\n\t"                                                                   \
    "vmul.f32 q7, q5, " x "\n\t"                                                                   \
    "vadd.f32 " sum ", " sum ", q6\n\t"                                                            \
    "vadd.f32 " next ", " next ", q7\n\t"
#define VLOAD_4                     "vldrw.u32 q4, [r3], #16\n\t"
#define VLOAD_8                     VLOAD_4 "vldrw.u32 q5, [r3], #16\n\t"
#define TWO(address, first, second) "ldrd " first ", " second ", [" address "], #8\n\t"
#define ONE(address, only)          "ldr " only ", [" address "], #4\n\t"

#define VMACS_8_1(x)    VLOAD_8 VMAC2("q0", "q1", x)
#define VMACS_8_2(x, y) VMACS_8_1(x) VMAC2("q2", "q3", y)
#define VMACS_4_1(x)    VLOAD_4 VMAC("q0", "q4", "q6", x)
#define VMACS_4_2(x, y) VMACS_4_1(x) VMAC("q2", "q4", "q7", y)
#define VSTEP_8_1       TWO("r1", "r4", "r5") VMACS_8_1("r4") VMACS_8_1("r5")
#define VSTEP_4_1       TWO("r1", "r4", "r5") VMACS_4_1("r4") VMACS_4_1("r5")
#define VSTEP_8_2                                                                                  \
    TWO("r1", "r4", "r5") TWO("r2", "r6", "r12") VMACS_8_2("r4", "r6") VMACS_8_2("r5", "r12")
#define VSTEP_4_2                                                                                  \
    TWO("r1", "r4", "r5") TWO("r2", "r6", "r12") VMACS_4_2("r4", "r6") VMACS_4_2("r5", "r12")
#define VSINGLE_8_1 ONE("r1", "r4") VMACS_8_1("r4")
#define VSINGLE_4_1 ONE("r1", "r4") VMACS_4_1("r4")
#define VSINGLE_8_2 ONE("r1", "r4") ONE("r2", "r6") VMACS_8_2("r4", "r6")
#define VSINGLE_4_2 ONE("r1", "r4") ONE("r2", "r6") VMACS_4_2("r4", "r6")

/* Add biases and clamp: q6 and r4 are the lower limit, r5 is the upper one. */
#define VCLOSE(sum, bias)                                                                          \
    "vadd.f32 " sum ", " sum ", " bias "\n\t"                                                      \
    "vpt.f32 gt, q6, " sum "\n\t"                                                                  \
    "vdupt.32 " sum ", r4\n\t"                                                                     \
    "vpt.f32 gt, " sum ", r5\n\t"                                                                  \
    "vdupt.32 " sum ", r5\n\t"
#define VCLOSE_8_1        VCLOSE("q0", "q4") VCLOSE("q1", "q5")
#define VCLOSE_8_2        VCLOSE_8_1 VCLOSE("q2", "q4") VCLOSE("q3", "q5")
#define VCLOSE_4_1        VCLOSE("q0", "q4")
#define VCLOSE_4_2        VCLOSE_4_1 VCLOSE("q2", "q4")
#define VPUT(sum, output) "vstrw.32 " sum ", [" output "], #16\n\t"
#define VPUT_8_1          VPUT("q0", "r9") VPUT("q1", "r9")
#define VPUT_8_2          VPUT_8_1 VPUT("q2", "r11") VPUT("q3", "r11")
#define VPUT_4_1          VPUT("q0", "r9")
#define VPUT_4_2          VPUT_4_1 VPUT("q2", "r11")
/* Store the first r4 channels of a block. */
#define VPART(sum, output)                                                                         \
    "vpst\n\t"                                                                                     \
    "vstrwt.32 " sum ", [" output "], #16\n\t"
#define VREST(sums)                                                                                \
    "subs r4, #4\n\t"                                                                              \
    "bls 15b\n\t"                                                                                  \
    "vctp.32 r4\n\t" sums
#define VPART_8_1 VPART("q0", "r9") VREST(VPART("q1", "r9"))
#define VPART_8_2 VPART("q0", "r9") VPART("q2", "r11") VREST(VPART("q1", "r9") VPART("q3", "r11"))
#define VPART_4_1 VPART("q0", "r9")
#define VPART_4_2 VPART_4_1 VPART("q2", "r11")

/* The rows of a window whose runs have several elements. */
#define VRUNS_OF(channels, count)                                                                  \
    "3:\n\t" /* a row */                                                                           \
    "ldr r4, [r0, " RUNS "]\n\t"                                                                   \
    "str r4, [sp, #12]\n\t"                                                                        \
    "4:\n\t" /* a run */                                                                           \
    "lsr r12, r8, #1\n\t"                                                                          \
    "wls lr, r12, 6f\n\t"                                                                          \
    "5:\n\t" VSTEP_##channels##_##count "le lr, 5b\n\t"                                            \
                                        "6:\n\t"                                                   \
                                        "tst r8, #1\n\t"                                           \
                                        "beq 8f\n\t" VSINGLE_##channels##_##count                  \
        "8:\n\t"                                                                                   \
        "ldr r4, [sp, #12]\n\t"                                                                    \
        "subs r4, #1\n\t"                                                                          \
        "beq 7f\n\t"                                                                               \
        "ldr r5, [r0, " RUN_STEP "]\n\t"                                                           \
        "str r4, [sp, #12]\n\t"                                                                    \
        "add r1, r5\n\t" SECOND_##count(                                                           \
            "add r2, r5\n\t") "b 4b\n\t"                                                           \
                              "7:\n\t"                                                             \
                              "ldrd r4, r5, [r0, " ROW_STEP "]\n\t" /* and WEIGHTS_BESIDE */       \
                              "add r1, r4\n\t" SECOND_##count("add r2, r4\n\t") "add r3, r5\n\t"   \
                                                                                "subs r10, #1\n\t" \
                                                                                "bne 3b\n\t"

/* The rows of a window for eight channels, of which each has its own weights: runs of one element.
 * r6: the step between elements. */
#define VLANES(sum, next, x)                                                                       \
    "vldrw.u32 q6, [" x "]\n\t"                                                                    \
    "vldrw.u32 q7, [" x ", #16]\n\t"                                                               \
    "vmul.f32 q6, q6, q4\n\t"                                                                      \
    "vmul.f32 q7, q7, q5\n\t"                                                                      \
    "vadd.f32 " sum ", " sum ", q6\n\t"                                                            \
    "vadd.f32 " next ", " next ", q7\n\t"
#define VTAPS_OF(count)                                                                            \
    "ldr r12, [r0, " RUNS "]\n\t"                                                                  \
    "ldr r6, [r0, " RUN_STEP "]\n\t"                                                               \
    "ldrd r4, r5, [r0, " ROW_STEP "]\n\t" /* and WEIGHTS_BESIDE */                                 \
    "3:\n\t"                                                                                       \
    "dls lr, r12\n\t"                                                                              \
    "4:\n\t" VLOAD_8 VLANES("q0", "q1", "r1") SECOND_##count(                                      \
        VLANES("q2", "q3", "r2") "add r2, r6\n\t") "add r1, r6\n\t"                                \
                                                   "le lr, 4b\n\t"                                 \
                                                   "add r1, r4\n\t" SECOND_##count(                \
                                                       "add r2, r4\n\t") "add r3, r5\n\t"          \
                                                                         "subs r10, #1\n\t"        \
                                                                         "bne 3b\n\t"

/* The bytes of the image before the channels of a block. */
#define OFFSET_0
#define OFFSET_32                                                                                  \
    "ldr r4, [sp, #20]\n\t"                                                                        \
    "add r1, r4\n\t"
#define NEXT_OFFSET_0(count)
#define NEXT_OFFSET_32(count)                                                                      \
    "ldr r4, [sp, #20]\n\t"                                                                        \
    "adds r4, #32\n\t"                                                                             \
    "cmp r7, #1\n\t"                                                                               \
    "bne 17f\n\t"                                                                                  \
    "ldr r5, [r0, " COUNT "]\n\t"                                                                  \
    "subs r4, r5\n\t"                                                                              \
    "sub r9, r5\n\t" SECOND_##count("sub r11, r5\n\t") "17:\n\t"                                   \
                                                       "str r4, [sp, #20]\n\t"

/*
 * As KERNEL, but r10: rows left, and the frame: the image, the outputs, the pixels left, the runs
 * left in the row, the flags of the caller, the offset of the channels. Returns the pixels left.
 */
#define VECTORS(channels, count, products, block_bytes)                                            \
    ".arch_extension mve.fp\n\t" /* compilers must not use it, see above */                        \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d15}\n\t"                                                                           \
    "sub sp, #24\n\t"                                                                              \
    "vmrs r6, fpscr\n\t"                                                                           \
    "and r7, r6, " FERRULE_TOO_SMALL_TEXT "\n\t"                                                   \
    "bic r6, r6, " FERRULE_TOO_SMALL_TEXT "\n\t"                                                   \
    "vmsr fpscr, r6\n\t"                                                                           \
    "str r7, [sp, #16]\n\t"                                                                        \
    "ldr r1, [r0, " IMAGE "]\n\t"                                                                  \
    "ldr r2, [r0, " OUTPUT "]\n\t"                                                                 \
    "ldr r4, [r0, " PIXELS "]\n\t"                                                                 \
    "strd r1, r2, [sp]\n\t"                                                                        \
    "str r4, [sp, #8]\n\t"                                                                         \
    "1:\n\t"                            /* pixels */                                               \
    "ldrd r3, r7, [r0, " STREAM "]\n\t" /* and BLOCKS */                                           \
    "ldr r8, [r0, " COUNT "]\n\t"                                                                  \
    "mov r12, #0\n\t"                                                                              \
    "str r12, [sp, #20]\n\t"                                                                       \
    "ldr r9, [sp, #4]\n\t" SECOND_##count(                                                         \
        "ldr r11, [r0, " OUTPUT_STEP "]\n\t"                                                       \
        "add r11, r9\n\t") "2:\n\t" /* a block of channels */                                      \
                           "ldr r10, [r0, " ROWS "]\n\t"                                           \
                           "ldr r1, [sp]\n\t" OFFSET_##block_bytes                                 \
        "vmov.i32 q0, #0\n\t"                                                                      \
        "vmov.i32 q1, #0\n\t" SECOND_##count(                                                      \
            "ldr r2, [r0, " IMAGE_STEP "]\n\t"                                                     \
            "vmov.i32 q2, #0\n\t"                                                                  \
            "vmov.i32 q3, #0\n\t"                                                                  \
            "add r2, r1\n\t") "cmp r10, #0\n\t"                                                    \
                              "beq 9f\n\t" products "9:\n\t"                                       \
                              "ldrd r4, r12, [r0, " WEIGHTS_BEHIND                                 \
                              "]\n\t" /* and WEIGHTS_BEFORE */                                     \
                              "add r3, r4\n\t"                                                     \
                              "ldrd r4, r5, [r0, " LOW "]\n\t" VLOAD_##channels                    \
        "vdup.32 q6, r4\n\t"                                                                       \
        "add r3, r12\n\t" VCLOSE_##channels##_##count                                              \
        "subs r7, #1\n\t"                                                                          \
        "beq 13f\n\t"                                                                              \
        "11:\n\t" VPUT_##channels##_##count                                                        \
        NEXT_OFFSET_##block_bytes(count) "cmp r7, #0\n\t"                                          \
                                         "bne 2b\n\t"                                              \
                                         "15:\n\t" /* the next pixels */                           \
                                         "vmrs r4, fpscr\n\t"                                      \
                                         "ldrd r5, r6, [sp, #4]\n\t"                               \
                                         "tst r4, " FERRULE_TOO_SMALL_TEXT "\n\t"                  \
                                         "bne 16f\n\t"                                             \
                                         "ldr r4, [sp]\n\t"                                        \
                                         "ldr r1, [r0, " IMAGE_STEP "]\n\t"                        \
                                         "ldr r2, [r0, " OUTPUT_STEP "]\n\t"                       \
                                         "add r4, r4, r1, lsl #(" #count " - 1)\n\t"               \
                                         "add r5, r5, r2, lsl #(" #count " - 1)\n\t"               \
                                         "subs r6, #" #count "\n\t"                                \
                                         "strd r4, r5, [sp]\n\t"                                   \
                                         "str r6, [sp, #8]\n\t"                                    \
                                         "cmp r6, #" #count "\n\t"                                 \
                                         "bge 1b\n\t"                                              \
                                         "16:\n\t"                                                 \
                                         "vmrs r4, fpscr\n\t"                                      \
                                         "ldr r5, [sp, #16]\n\t"                                   \
                                         "mov r0, r6\n\t"                                          \
                                         "orr r4, r5\n\t"                                          \
                                         "vmsr fpscr, r4\n\t"                                      \
                                         "add sp, #24\n\t"                                         \
                                         "vpop {d8-d15}\n\t"                                       \
                                         "pop {r4-r11, pc}\n\t"                                    \
                                         "13:\n\t"                                                 \
                                         "ldr r4, [r0, " LAST "]\n\t"                              \
                                         "cmp r4, #" #channels "\n\t"                              \
                                         "beq 11b\n\t"                                             \
                                         "vctp.32 r4\n\t" VPART_##channels##_##count "b 15b\n\t"

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_pairs_8(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(8, 2, VRUNS_OF(8, 2), 0));
}

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_singles_8(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(8, 1, VRUNS_OF(8, 1), 0));
}

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_pairs_4(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(4, 2, VRUNS_OF(4, 2), 0));
}

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_singles_4(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(4, 1, VRUNS_OF(4, 1), 0));
}

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_pairs_of_channels(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(8, 2, VTAPS_OF(2), 32));
}

__attribute__((naked, aligned(4))) int32_t
ferrule_float_vector_single_channels(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(VECTORS(8, 1, VTAPS_OF(1), 32));
}

#endif
