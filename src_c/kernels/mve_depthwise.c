/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_conv2d_mve.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_depthwise, stream) == 36, "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_depthwise, output_step) == 68,
               "used in the assembler below");
_Static_assert(offsetof(struct ferrule_mve_depthwise, list) == 72, "used in the assembler below");

/* Two taps of 16 channels: products of 16 bits, even channels in q4 and odd ones in q5. The sum of
 * two fits into 16 bits. */
#define FIRST(load, tap)                                                                           \
    load(tap) "vldrb.u8 q7, [r7], #16\n\t"                                                         \
              "vmullb.s8 q4, q6, q7\n\t"                                                           \
              "vmullt.s8 q5, q6, q7\n\t"
#define SECOND(load, tap)                                                                          \
    load(tap) "vldrb.u8 q7, [r7]\n\t"                                                              \
              "vmullb.s8 q7, q6, q7\n\t"                                                           \
              "vadd.i16 q4, q4, q7\n\t"                                                            \
              "vldrb.u8 q7, [r7], #16\n\t"                                                         \
              "vmullt.s8 q7, q6, q7\n\t"                                                           \
              "vadd.i16 q5, q5, q7\n\t"
/* Add to the sums: channels 0, 4, 8, 12 in q0; 2, 6, 10, 14; 1, 5, 9, 13; 3, 7, 11, 15. */
#define WIDEN                                                                                      \
    "vmovlb.s16 q6, q4\n\t"                                                                        \
    "vmovlt.s16 q7, q4\n\t"                                                                        \
    "vadd.i32 q0, q0, q6\n\t"                                                                      \
    "vadd.i32 q1, q1, q7\n\t"                                                                      \
    "vmovlb.s16 q6, q5\n\t"                                                                        \
    "vmovlt.s16 q7, q5\n\t"                                                                        \
    "vadd.i32 q2, q2, q6\n\t"                                                                      \
    "vadd.i32 q3, q3, q7\n\t"
#define PAIR(load, first, second) FIRST(load, first) SECOND(load, second) WIDEN
#define HIGH(sums)                "vldrw.u32 q4, [r7], #16\n\t" FERRULE_MVE_HIGH(sums, "q4")
#define SHIFT(sums)               "vldrb.s32 q4, [r7], #4\n\t" FERRULE_MVE_SHIFT(sums, "q4")
#define BELOW(sums)               FERRULE_MVE_BELOW(sums, "q4")
#define ALL(each)                 each("q0") each("q1") each("q2") each("q3")
#define NONE(sums)
/* A vector of the data, and of the output. Of lanes in fours, the loop is predicated: byte i,
 * halfword i / 2 and word i / 4 of every vector belong to the lane i, and a word is written whole.
 * Of other lanes, only the data and the output are predicated. */
#define LOAD_FOURS(tap) "vldrb.u8 q6, [" tap "], #16\n\t"
#define LOAD_ANY(tap)   "vpst\n\tvldrbt.u8 q6, [" tap "], #16\n\t"
#define STORE_FOURS     "vstrb.8 q0, [r10], #16\n\t"
#define STORE_ANY       "vpst\n\tvstrbt.8 q0, [r10], #16\n\t"
/* Begin and end the loop over the lanes in `lanes`; `left` is loaded and stored by the texts. */
#define BEGIN_FOURS(lanes) "dlstp.8 lr, " lanes "\n\t"
#define BEGIN_ANY(lanes)                                                                           \
    "add " lanes ", #15\n\t"                                                                       \
    "lsr " lanes ", #4\n\t"                                                                        \
    "dls lr, " lanes "\n\t"
#define END_FOURS "letp lr, 2b\n\t"
#define END_ANY   "le lr, 2b\n\t"

#define CLAMP_PLAIN
#define CLAMP_GENERAL                                                                              \
    "ldr r12, [sp, #16]\n\t"                                                                       \
    "vdup.8 q4, r12\n\t"                                                                           \
    "ldr r12, [sp, #20]\n\t"                                                                       \
    "vdup.8 q5, r12\n\t"                                                                           \
    "vmax.s8 q0, q0, q4\n\t"                                                                       \
    "vmin.s8 q0, q0, q5\n\t"                                                                       \
    "ldr r12, [sp, #12]\n\t"

/*
 * The taps' addresses in r0 to r6, r8 and r9, the stream in r7, the output in r10. The loop over
 * the channels reads and writes no byte beyond the lanes. The frame: stream, lanes, steps left,
 * zero point, limits, output step, lanes left.
 */
#define LEFT_FOURS
#define LEFT_ANY                                                                                   \
    "ldr r12, [sp, #28]\n\t"                                                                       \
    "vctp.8 r12\n\t"                                                                               \
    "sub r12, #16\n\t"                                                                             \
    "str r12, [sp, #28]\n\t"                                                                       \
    "ldr r12, [sp, #12]\n\t"
#define RUN(lanes, below, clamp)                                                                   \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d15}\n\t"                                                                           \
    "sub sp, #32\n\t"                                                                              \
    "ldrd r1, r10, [r0, #36]\n\t"                                                                  \
    "ldrd r11, r2, [r0, #44]\n\t"                                                                  \
    "strd r1, r2, [sp]\n\t"                                                                        \
    "ldrd r1, r2, [r0, #52]\n\t"                                                                   \
    "strd r1, r2, [sp, #8]\n\t"                                                                    \
    "ldrd r1, r2, [r0, #60]\n\t"                                                                   \
    "strd r1, r2, [sp, #16]\n\t"                                                                   \
    "ldr r1, [r0, #68]\n\t"                                                                        \
    "str r1, [sp, #24]\n\t"                                                                        \
    "ldm r0, {r0-r6, r8, r9}\n\t"                                                                  \
    "1:\n\t" /* a step */                                                                          \
    "ldrd r7, r12, [sp]\n\t"                                                                       \
    "str r12, [sp, #28]\n\t" BEGIN_##lanes("r12") "ldr r12, [sp, #12]\n\t"                         \
                                                  "2:\n\t" /* 16 lanes */ LEFT_##lanes             \
        "vldrw.u32 q0, [r7], #16\n\t"                                                              \
        "vldrw.u32 q1, [r7], #16\n\t"                                                              \
        "vldrw.u32 q2, [r7], #16\n\t"                                                              \
        "vldrw.u32 q3, [r7], #16\n\t" PAIR(LOAD_##lanes, "r0", "r1")                               \
            PAIR(LOAD_##lanes, "r2", "r3") PAIR(LOAD_##lanes, "r4", "r5")                          \
                PAIR(LOAD_##lanes, "r6", "r8") FIRST(LOAD_##lanes, "r9") WIDEN                     \
                ALL(HIGH) ALL(below)                                                               \
                    ALL(SHIFT) "vqmovnb.s32 q0, q0\n\t"                                            \
                               "vqmovnt.s32 q0, q1\n\t"                                            \
                               "vqmovnb.s32 q2, q2\n\t"                                            \
                               "vqmovnt.s32 q2, q3\n\t"                                            \
                               "vqadd.s16 q0, q0, r12\n\t"                                         \
                               "vqadd.s16 q2, q2, r12\n\t"                                         \
                               "vqmovnb.s16 q0, q0\n\t"                                            \
                               "vqmovnt.s16 q0, q2\n\t" clamp STORE_##lanes END_##lanes            \
        "ldr r7, [sp, #24]\n\t"                                                                    \
        "ldr r12, [sp, #8]\n\t"                                                                    \
        "add r10, r10, r7\n\t"                                                                     \
        "add r0, r0, r11\n\t"                                                                      \
        "add r1, r1, r11\n\t"                                                                      \
        "add r2, r2, r11\n\t"                                                                      \
        "add r3, r3, r11\n\t"                                                                      \
        "add r4, r4, r11\n\t"                                                                      \
        "add r5, r5, r11\n\t"                                                                      \
        "add r6, r6, r11\n\t"                                                                      \
        "add r9, r9, r11\n\t"                                                                      \
        "add r8, r8, r11\n\t"                                                                      \
        "subs r12, r12, #1\n\t"                                                                    \
        "str r12, [sp, #8]\n\t"                                                                    \
        "bne.w 1b\n\t"                                                                             \
        "add sp, #32\n\t"                                                                          \
        "vpop {d8-d15}\n\t"                                                                        \
        "pop {r4-r11, pc}\n\t"

/*
 * The run in r11, its list in r2, pairs left in r4; the offset of the channels and of the step in
 * r3, lanes left in r5.
 */
#define NEXT_FOURS
#define NEXT_ANY                                                                                   \
    "vctp.8 r5\n\t"                                                                                \
    "sub r5, #16\n\t"
#define LIST(lanes)                                                                                \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d15}\n\t"                                                                           \
    "mov r11, r0\n\t"                                                                              \
    "ldr r10, [r11, #40]\n\t"                                                                      \
    "movs r3, #0\n\t"                                                                              \
    "1:\n\t" /* a step */                                                                          \
    "ldr r7, [r11, #36]\n\t"                                                                       \
    "ldr r12, [r11, #48]\n\t"                                                                      \
    "mov r5, r12\n\t" BEGIN_##lanes("r12") "2:\n\t" /* 16 lanes */ NEXT_##lanes                    \
        "vldrw.u32 q0, [r7], #16\n\t"                                                              \
        "vldrw.u32 q1, [r7], #16\n\t"                                                              \
        "vldrw.u32 q2, [r7], #16\n\t"                                                              \
        "vldrw.u32 q3, [r7], #16\n\t"                                                              \
        "ldrd r2, r4, [r11, #72]\n\t"                                                              \
        "3:\n\t"                                                                                   \
        "ldrd r0, r1, [r2], #8\n\t"                                                                \
        "add r0, r0, r3\n\t"                                                                       \
        "add r1, r1, r3\n\t" PAIR(LOAD_##lanes, "r0",                                              \
                                  "r1") "subs r4, #1\n\t"                                          \
                                        "bne 3b\n\t"                                               \
                                        "ldrd r12, r0, [r11, #56]\n\t"                             \
                                        "ldr r1, [r11, #64]\n\t" ALL(HIGH) ALL(BELOW) ALL(         \
                                            SHIFT) "vqmovnb.s32 q0, q0\n\t"                        \
                                                   "vqmovnt.s32 q0, q1\n\t"                        \
                                                   "vqmovnb.s32 q2, q2\n\t"                        \
                                                   "vqmovnt.s32 q2, q3\n\t"                        \
                                                   "vqadd.s16 q0, q0, r12\n\t"                     \
                                                   "vqadd.s16 q2, q2, r12\n\t"                     \
                                                   "vqmovnb.s16 q0, q0\n\t"                        \
                                                   "vqmovnt.s16 q0, q2\n\t"                        \
                                                   "vdup.8 q4, r0\n\t"                             \
                                                   "vdup.8 q5, r1\n\t"                             \
                                                   "vmax.s8 q0, q0, q4\n\t"                        \
                                                   "vmin.s8 q0, q0, q5\n\t"                        \
                                                   "add r3, r3, #16\n\t" STORE_##lanes END_##lanes \
        "ldr r0, [r11, #68]\n\t"                                                                   \
        "ldr r1, [r11, #44]\n\t"                                                                   \
        "ldr r2, [r11, #52]\n\t"                                                                   \
        "add r10, r10, r0\n\t"                                                                     \
        "add r3, r3, r1\n\t"                                                                       \
        "subs r2, #1\n\t"                                                                          \
        "str r2, [r11, #52]\n\t"                                                                   \
        "bne.w 1b\n\t"                                                                             \
        "vpop {d8-d15}\n\t"                                                                        \
        "pop {r4-r11, pc}\n\t"

#define DEFINE(name, text)                                                                         \
    __attribute__((naked)) void ferrule_mve_depthwise_##name(                                      \
        __attribute__((unused)) struct ferrule_mve_depthwise *run)                                 \
    {                                                                                              \
        __asm__(text);                                                                             \
    }

#else

/* The place of a channel of 16 among biases, multipliers and shifts. */
static int32_t place_of(int32_t channel)
{
    static const int32_t first[] = {0, 8, 4, 12};

    return first[channel % 4] + channel / 4;
}

static void run_taps(const struct ferrule_mve_depthwise *run)
{
    const int8_t *const *list = run->list != NULL ? run->list : run->taps;
    const int32_t taps = run->list != NULL ? 2 * run->pairs : FERRULE_MVE_TAPS;
    const int32_t multipliers = 16 + 4 * taps;
    const int32_t shifts = multipliers + 16;
    const struct ferrule_output_s8 limits = {run->zero_point, run->low, run->high};
    int32_t whole = (run->lanes + 15) / 16 * 16;

    for (int32_t i = 0; i < run->count; ++i) {
        for (int32_t c = 0; c < run->lanes; ++c) {
            const int32_t *block = run->stream + c / 16 * (shifts + 4);
            int32_t place = place_of(c % 16);
            int32_t sum = block[place];

            for (int32_t t = 0; t < taps; ++t) {
                sum += list[t][i * (run->tap_step + whole) + c] *
                       ferrule_mve_byte(block + 16, 16 * t + c % 16);
            }
            run->output[i * run->lanes + c] = ferrule_mve_store(
                sum, block[multipliers + place], ferrule_mve_byte(block + shifts, place), &limits);
        }
    }
}

#define DEFINE(name, text)                                                                         \
    void ferrule_mve_depthwise_##name(struct ferrule_mve_depthwise *run)                           \
    {                                                                                              \
        run_taps(run);                                                                             \
    }

#endif

DEFINE(plain, RUN(FOURS, NONE, CLAMP_PLAIN))
DEFINE(general, RUN(FOURS, BELOW, CLAMP_GENERAL))
DEFINE(listed, LIST(FOURS))
DEFINE(any_plain, RUN(ANY, NONE, CLAMP_PLAIN))
DEFINE(any_general, RUN(ANY, BELOW, CLAMP_GENERAL))
DEFINE(any_listed, LIST(ANY))
