/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/float_blocks.inc.h"

#if FERRULE_HAS_VFP

#define UNUSED __attribute__((unused))

/* Products of four weights and an element are added to four sums. A product is used four
 * instructions later, since cores take up to three cycles for one. */
#define ADD4(a, b, c, d, wa, wb, wc, wd, x)                                                        \
    "vmul.f32 s28, s" #wa ", s" #x "\n\t"                                                          \
    "vmul.f32 s29, s" #wb ", s" #x "\n\t"                                                          \
    "vmul.f32 s30, s" #wc ", s" #x "\n\t"                                                          \
    "vmul.f32 s31, s" #wd ", s" #x "\n\t"                                                          \
    "vadd.f32 s" #a ", s" #a ", s28\n\t"                                                           \
    "vadd.f32 s" #b ", s" #b ", s29\n\t"                                                           \
    "vadd.f32 s" #c ", s" #c ", s30\n\t"                                                           \
    "vadd.f32 s" #d ", s" #d ", s31\n\t"
#define LOAD(address, first, last) "vldmia " address "!, {s" #first "-s" #last "}\n\t"

#define LOAD1(address, only) "vldmia " address "!, {s" #only "}\n\t"

/* Eight channels: sums of the first pixel in s0 to s7, of the second one in s8 to s15, weights in
 * s16 to s23. */
#define EIGHT(x)                                                                                   \
    LOAD("r3", 16, 23)                                                                             \
    ADD4(0, 1, 2, 3, 16, 17, 18, 19, x) ADD4(4, 5, 6, 7, 20, 21, 22, 23, x)
#define EIGHT_OF_TWO(x, y)                                                                         \
    EIGHT(x) ADD4(8, 9, 10, 11, 16, 17, 18, 19, y) ADD4(12, 13, 14, 15, 20, 21, 22, 23, y)
#define STEP_8_1   LOAD("r1", 24, 27) EIGHT(24) EIGHT(25) EIGHT(26) EIGHT(27)
#define SINGLE_8_1 LOAD1("r1", 24) EIGHT(24)
#define STEP_8_2   LOAD("r1", 24, 25) LOAD("r2", 26, 27) EIGHT_OF_TWO(24, 26) EIGHT_OF_TWO(25, 27)
#define SINGLE_8_2 LOAD1("r1", 24) LOAD1("r2", 26) EIGHT_OF_TWO(24, 26)

/* Four channels: sums in s0 to s3 and s4 to s7, weights in s16 to s19. */
#define FOUR(x)           LOAD("r3", 16, 19) ADD4(0, 1, 2, 3, 16, 17, 18, 19, x)
#define FOUR_OF_TWO(x, y) FOUR(x) ADD4(4, 5, 6, 7, 16, 17, 18, 19, y)
#define STEP_4_1          LOAD("r1", 24, 27) FOUR(24) FOUR(25) FOUR(26) FOUR(27)
#define SINGLE_4_1        LOAD1("r1", 24) FOUR(24)
#define STEP_4_2                                                                                   \
    LOAD("r1", 20, 23)                                                                             \
    LOAD("r2", 24, 27)                                                                             \
    FOUR_OF_TWO(20, 24) FOUR_OF_TWO(21, 25) FOUR_OF_TWO(22, 26) FOUR_OF_TWO(23, 27)
#define SINGLE_4_2 LOAD1("r1", 20) LOAD1("r2", 24) FOUR_OF_TWO(20, 24)

/* Add biases, and s16 to the differences of all results from themselves: it is not 0 if one of
 * them is infinite or NaN. */
#define BIAS4(a, b, c, d, wa, wb, wc, wd)                                                          \
    "vadd.f32 s" #a ", s" #a ", s" #wa "\n\t"                                                      \
    "vadd.f32 s" #b ", s" #b ", s" #wb "\n\t"                                                      \
    "vadd.f32 s" #c ", s" #c ", s" #wc "\n\t"                                                      \
    "vadd.f32 s" #d ", s" #d ", s" #wd "\n\t"
#define TOTAL4(a, b, c, d)                                                                         \
    "vadd.f32 s24, s24, s" #a "\n\t"                                                               \
    "vadd.f32 s25, s25, s" #b "\n\t"                                                               \
    "vadd.f32 s24, s24, s" #c "\n\t"                                                               \
    "vadd.f32 s25, s25, s" #d "\n\t"
#define TOTAL_4 "vadd.f32 s24, s0, s2\n\tvadd.f32 s25, s1, s3\n\t"
#define TOTAL_8 TOTAL_4 TOTAL4(4, 5, 6, 7)
#define BIAS_8_1                                                                                   \
    LOAD("r3", 16, 23)                                                                             \
    BIAS4(0, 1, 2, 3, 16, 17, 18, 19) BIAS4(4, 5, 6, 7, 20, 21, 22, 23) TOTAL_8
#define BIAS_8_2                                                                                   \
    BIAS_8_1 BIAS4(8, 9, 10, 11, 16, 17, 18, 19) BIAS4(12, 13, 14, 15, 20, 21, 22, 23)             \
        TOTAL4(8, 9, 10, 11) TOTAL4(12, 13, 14, 15)
#define BIAS_4_1 LOAD("r3", 16, 19) BIAS4(0, 1, 2, 3, 16, 17, 18, 19) TOTAL_4
#define BIAS_4_2                                                                                   \
    LOAD("r3", 16, 19)                                                                             \
    BIAS4(0, 1, 2, 3, 16, 17, 18, 19) BIAS4(4, 5, 6, 7, 16, 17, 18, 19) TOTAL_8

/* Finite numbers, none of them -0 (no sum of two is, unless both are), are compared as integers. */
#define TAKE4(a, b, c, d)                                                                          \
    "vmov r1, r2, s" #a ", s" #b "\n\t"                                                            \
    "vmov r4, r5, s" #c ", s" #d "\n\t"                                                            \
    "bic r1, r1, r1, asr #31\n\t"                                                                  \
    "bic r2, r2, r2, asr #31\n\t"                                                                  \
    "bic r4, r4, r4, asr #31\n\t"                                                                  \
    "bic r5, r5, r5, asr #31\n\t"
#define GIVE4(output) "stmia " output "!, {r1, r2, r4, r5}\n\t"
#define LOWER(value)                                                                               \
    "sub " value ", " value ", r12\n\t"                                                            \
    "and " value ", " value ", " value ", asr #31\n\t"                                             \
    "add " value ", " value ", r12\n\t"
#define RELU4(output, a, b, c, d) TAKE4(a, b, c, d) GIVE4(output)
#define RELU_N4(output, a, b, c, d)                                                                \
    TAKE4(a, b, c, d) LOWER("r1") LOWER("r2") LOWER("r4") LOWER("r5") GIVE4(output)
#define STORE4(output, a, b, c, d) "vstmia " output "!, {s" #a "-s" #d "}\n\t"
#define EACH_4_1(store)            store("r9", 0, 1, 2, 3)
#define EACH_4_2(store)            store("r9", 0, 1, 2, 3) store("r11", 4, 5, 6, 7)
#define EACH_8_1(store)            store("r9", 0, 1, 2, 3) store("r9", 4, 5, 6, 7)
#define EACH_8_2(store) EACH_8_1(store) store("r11", 8, 9, 10, 11) store("r11", 12, 13, 14, 15)

/* The next results in memory, at r1, clamped one by one; r2 of them go to `output`. */
#define CLAMP(output)                                                                              \
    "mov r2, r4\n\t"                                                                               \
    "31:\n\t"                                                                                      \
    "vldmia r1!, {s18}\n\t"                                                                        \
    "vcmp.f32 s18, s16\n\t"                                                                        \
    "vmrs APSR_nzcv, FPSCR\n\t"                                                                    \
    "it mi\n\t"                                                                                    \
    "vmovmi.f32 s18, s16\n\t"                                                                      \
    "vcmp.f32 s18, s17\n\t"                                                                        \
    "vmrs APSR_nzcv, FPSCR\n\t"                                                                    \
    "it gt\n\t"                                                                                    \
    "vmovgt.f32 s18, s17\n\t"                                                                      \
    "vstmia " output "!, {s18}\n\t"                                                                \
    "subs r2, #1\n\t"                                                                              \
    "bne 31b\n\t"

/* The rows of a window whose runs have several elements. */
#define RUNS_OF(channels, count, unroll)                                                           \
    "3:\n\t" /* a row */                                                                           \
    "ldr r5, [r0, " RUNS "]\n\t"                                                                   \
    "4:\n\t" /* a run */                                                                           \
    "subs r4, r8, #" #unroll "\n\t"                                                                \
    "blt 6f\n\t"                                                                                   \
    "5:\n\t" STEP_##channels##_##count "subs r4, #" #unroll "\n\t"                                 \
                                       "bge 5b\n\t"                                                \
                                       "6:\n\t"                                                    \
                                       "adds r4, #" #unroll "\n\t"                                 \
                                       "beq 8f\n\t"                                                \
                                       "7:\n\t" SINGLE_##channels##_##count                        \
        "subs r4, #1\n\t"                                                                          \
        "bne 7b\n\t"                                                                               \
        "8:\n\t"                                                                                   \
        "subs r5, #1\n\t"                                                                          \
        "ittt ne\n\t"                                                                              \
        "addne r1, r10\n\t"                                                                        \
        "addne r2, r10\n\t"                                                                        \
        "bne 4b\n\t"                                                                               \
        "ldrd r4, r12, [r0, " ROW_STEP "]\n\t" /* and WEIGHTS_BESIDE */                            \
        "add r1, r4\n\t" SECOND_##count("add r2, r4\n\t") "add r3, r12\n\t"                        \
                                                          "subs r6, #1\n\t"                        \
                                                          "bne 3b\n\t"

/* The next channels; the last eight ones begin `count` bytes earlier. */
#define NEXT_0(count)
#define NEXT_32(count)                                                                             \
    "add lr, #32\n\t"                                                                              \
    "cmp r7, #1\n\t"                                                                               \
    "bne 17f\n\t"                                                                                  \
    "ldr r4, [r0, " COUNT "]\n\t"                                                                  \
    "sub lr, r4\n\t"                                                                               \
    "sub r9, r4\n\t" SECOND_##count("sub r11, r4\n\t") "17:\n\t"

/* The rows of a window for eight channels, of which each has its own weights: runs of one element.
 * r5: the step between elements. */
#define LANES(a, b, c, d, e, f, g, h, x)                                                           \
    "vldmia " x ", {s24-s31}\n\t" LANE(a, 24, 16) LANE(b, 25, 17) LANE(c, 26, 18) LANE(d, 27, 19)  \
        LANE(e, 28, 20) LANE(f, 29, 21) LANE(g, 30, 22) LANE(h, 31, 23) LANE_SUM(a, 24)            \
            LANE_SUM(b, 25) LANE_SUM(c, 26) LANE_SUM(d, 27) LANE_SUM(e, 28) LANE_SUM(f, 29)        \
                LANE_SUM(g, 30) LANE_SUM(h, 31)
#define LANE(a, x, w)  "vmul.f32 s" #x ", s" #x ", s" #w "\n\t"
#define LANE_SUM(a, x) "vadd.f32 s" #a ", s" #a ", s" #x "\n\t"
#define TAPS_OF(count)                                                                             \
    "ldr r5, [r0, " RUN_STEP "]\n\t"                                                               \
    "ldrd r8, r10, [r0, " ROW_STEP "]\n\t" /* and WEIGHTS_BESIDE */                                \
    "3:\n\t"                                                                                       \
    "ldr r4, [r0, " RUNS "]\n\t"                                                                   \
    "4:\n\t" LOAD("r3", 16, 23) LANES(0, 1, 2, 3, 4, 5, 6, 7, "r1")                                \
        SECOND_##count(LANES(8, 9, 10, 11, 12, 13, 14, 15,                                         \
                             "r2") "add r2, r5\n\t") "add r1, r5\n\t"                              \
                                                     "subs r4, #1\n\t"                             \
                                                     "bne 4b\n\t"                                  \
                                                     "add r1, r8\n\t" SECOND_##count(              \
                                                         "add r2, r8\n\t") "add r3, r10\n\t"       \
                                                                           "subs r6, #1\n\t"       \
                                                                           "bne 3b\n\t"

/*
 * r0: the argument, r1 and r2: elements of the two pixels, r3: weights, r4: elements left in the
 * run, r5: runs left in the row, r6: rows left, r7: blocks left, r8: elements of a run, r9 and
 * r11: the outputs of the two pixels, r10: the step between runs. The frame: the image, the
 * outputs, the pixels left, and results that are clamped one by one.
 */
#define KERNEL(channels, count, results, products, block_bytes)                                                               \
    "push {r4-r11, lr}\n\t"                                                                                                   \
    "vpush {d8-d15}\n\t"                                                                                                      \
    "sub sp, #" #results " * 4 + 12\n\t"                                                                                      \
    "ldr r1, [r0, " IMAGE "]\n\t"                                                                                             \
    "ldr r2, [r0, " OUTPUT "]\n\t"                                                                                            \
    "ldr r4, [r0, " PIXELS "]\n\t"                                                                                            \
    "strd r1, r2, [sp]\n\t"                                                                                                   \
    "str r4, [sp, #8]\n\t"                                                                                                    \
    "1:\n\t" /* pixels */                                                                                                     \
    "ldr r3, [r0, " STREAM "]\n\t"                                                                                            \
    "ldr r7, [r0, " BLOCKS "]\n\t"                                                                                            \
    "ldr r8, [r0, " COUNT "]\n\t"                                                                                             \
    "ldr r10, [r0, " RUN_STEP "]\n\t"                                                                                         \
    "ldr r9, [sp, #4]\n\t" SECOND_##count(                                                                                    \
        "ldr r11, [r0, " OUTPUT_STEP "]\n\t"                                                                                  \
        "add r11, r9\n\t") "mov lr, #0\n\t"                                                                                   \
                           "2:\n\t" /* a block of channels */                                                                 \
                           "adr r4, 90f\n\t"                                                                                  \
                           "ldr r6, [r0, " ROWS "]\n\t"                                                                       \
                           "ldr r1, [sp]\n\t"                                                                                 \
                           "add r1, lr\n\t"                                                                                   \
                           "vldmia r4, {s0-s" LAST_RESULT(results) "}\n\t" SECOND_##count(                                    \
                               "ldr r2, [r0, " IMAGE_STEP "]\n\t"                                                             \
                               "add r2, r1\n\t") "cmp r6, #0\n\t"                                                             \
                                                 "beq 9f\n\t" products "9:\n\t"                                               \
                                                 "ldrd r4, r12, [r0, " WEIGHTS_BEHIND                                         \
                                                 "]\n\t" /* and WEIGHTS_BEFORE */                                             \
                                                 "add r3, r4\n\t" BIAS_##channels##_##count                                   \
        "vadd.f32 s24, s24, s25\n\t"                                                                                          \
        "add r3, r12\n\t"                                                                                                     \
        "vmov r4, s24\n\t"                                                                                                    \
        "ldr r5, [r0, " LIMITS "]\n\t"                                                                                        \
        "lsls r4, r4, #1\n\t"                                                                                                 \
        "cmp r4, #0xff000000\n\t" /* the total is not finite; it may have overflowed on its own */                            \
        "bhs 20f\n\t"                                                                                                         \
        "subs r7, #1\n\t"                                                                                                     \
        "bne 11f\n\t"                                                                                                         \
        "ldr r4, [r0, " LAST "]\n\t"                                                                                          \
        "cmp r4, #" #channels "\n\t"                                                                                          \
        "bne 21f\n\t"                                                                                                         \
        "11:\n\t"                                                                                                             \
        "cmp r5, #1\n\t"                                                                                                      \
        "blo 12f\n\t"                                                                                                         \
        "bhi 13f\n\t" EACH_##channels##_##count(                                                                              \
            RELU4) "b 14f\n\t"                                                                                                \
                   "12:\n\t" EACH_##channels##_##count(                                                                       \
                       STORE4) "b 14f\n\t"                                                                                    \
                               "13:\n\t"                                                                                      \
                               "cmp r5, #2\n\t"                                                                               \
                               "bne 22f\n\t"                                                                                  \
                               "ldr r12, [r0, " HIGH "]\n\t" EACH_##channels##_##count(RELU_N4) "14:\n\t" NEXT_##block_bytes( \
                                   count) "cmp r7, #0\n\t"                                                                    \
                                          "bne 2b\n\t"                                                                        \
                                          "15:\n\t" /* the next pixels */                                                     \
                                          "ldr r1, [r0, " IMAGE_STEP "]\n\t"                                                  \
                                          "ldr r2, [r0, " OUTPUT_STEP "]\n\t"                                                 \
                                          "ldrd r4, r5, [sp]\n\t"                                                             \
                                          "ldr r6, [sp, #8]\n\t"                                                              \
                                          "add r4, r4, r1, lsl #(" #count " - 1)\n\t"                                         \
                                          "add r5, r5, r2, lsl #(" #count " - 1)\n\t"                                         \
                                          "strd r4, r5, [sp]\n\t"                                                             \
                                          "subs r6, #" #count "\n\t"                                                          \
                                          "str r6, [sp, #8]\n\t"                                                              \
                                          "cmp r6, #" #count "\n\t"                                                           \
                                          "bge 1b\n\t"                                                                        \
                                          "add sp, #" #results " * 4 + 12\n\t"                                                \
                                          "vpop {d8-d15}\n\t"                                                                 \
                                          "pop {r4-r11, pc}\n\t"                                                              \
                                          "20:\n\t"                                                                           \
                                          "subs r7, #1\n\t"                                                                   \
                                          "bne 22f\n\t"                                                                       \
                                          "ldr r4, [r0, " LAST "]\n\t"                                                        \
                                          "b 21f\n\t"                                                                         \
                                          "22:\n\t"                                                                           \
                                          "movs r4, #" #channels "\n\t"                                                       \
                                          "21:\n\t"                                                                           \
                                          "add r1, sp, #12\n\t"                                                               \
                                          "vldr.f32 s16, [r0, " LOW "]\n\t"                                                   \
                                          "vldr.f32 s17, [r0, " HIGH "]\n\t"                                                  \
                                          "mov r5, r1\n\t"                                                                    \
                                          "vstmia r5, {s0-s" LAST_RESULT(results) "}\n\t" CLAMP(                              \
                                              "r9")                                                                           \
                                              SECOND_##count(                                                                 \
                                                  "add r1, sp, #(12 + 4 * " #channels                                         \
                                                  ")\n\t" CLAMP(                                                              \
                                                      "r11")) "b 14b\n\t"                                                     \
                                                              ".balign 4\n\t"                                                 \
                                                              "90:\n\t"                                                       \
                                                              ".word 0, 0, 0, 0, 0, 0, 0, 0, "                                \
                                                              "0, 0, 0, 0, 0, 0, 0, 0\n\t"
#define LAST_RESULT(results) LAST_RESULT_##results
#define LAST_RESULT_4        "3"
#define LAST_RESULT_8        "7"
#define LAST_RESULT_16       "15"

__attribute__((naked, aligned(4))) void
ferrule_float_pairs_8(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(8, 2, 16, RUNS_OF(8, 2, 2), 0));
}

__attribute__((naked, aligned(4))) void
ferrule_float_singles_8(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(8, 1, 8, RUNS_OF(8, 1, 4), 0));
}

__attribute__((naked, aligned(4))) void
ferrule_float_pairs_4(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(4, 2, 8, RUNS_OF(4, 2, 4), 0));
}

__attribute__((naked, aligned(4))) void
ferrule_float_singles_4(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(4, 1, 4, RUNS_OF(4, 1, 4), 0));
}

__attribute__((naked, aligned(4))) void
ferrule_float_pairs_of_channels(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(8, 2, 16, TAPS_OF(2), 32));
}

__attribute__((naked, aligned(4))) void
ferrule_float_single_channels(UNUSED const struct ferrule_float_pixels *pixels)
{
    __asm__(KERNEL(8, 1, 8, TAPS_OF(1), 32));
}

#endif
