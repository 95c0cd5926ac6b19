/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "ferrule/kernels/depthwise_conv2d_mve.h"

#if FERRULE_HAS_MVE

_Static_assert(offsetof(struct ferrule_mve_plane, source_step) == 40, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_plane, input_zero_point) == 76, "used in the assembler");
_Static_assert(offsetof(struct ferrule_mve_plane, limits) == 92, "used in the assembler");

/* The products of a window, by the vectors of its weights. VMLADAV adds to the even core registers,
 * so the odd ones hold the addresses. */
#define MORE(sum, place, weights)                                                                  \
    "vldrb.u8 q4, [r1, #" place "]\n\t"                                                            \
    "vmladava.s8 " sum ", q4, " weights "\n\t"
#define WINDOW(sum, more)                                                                          \
    "vldrb.u8 q4, [r1]\n\t"                                                                        \
    "vmladav.s8 " sum ", q4, q0\n\t" more "add r1, r1, r3\n\t"
#define WINDOW_1(sum) WINDOW(sum, "")
#define WINDOW_2(sum) WINDOW(sum, MORE(sum, "16", "q1"))
#define WINDOW_3(sum) WINDOW(sum, MORE(sum, "16", "q1") MORE(sum, "32", "q2"))
#define WINDOW_4(sum) WINDOW(sum, MORE(sum, "16", "q1") MORE(sum, "32", "q2") MORE(sum, "48", "q3"))
#define WINDOWS(each)                                                                              \
    each("r0") each("r2") each("r4") each("r6") "cmp r7, #4\n\t"                                   \
                                                "ble.w 11f\n\t" each("r8") each("r10") each("r12") \
                                                    each("lr") "11:\n\t"

#define LOAD_LAST(weights)                                                                         \
    "vctp.8 r2\n\t"                                                                                \
    "vpst\n\t"                                                                                     \
    "vldrbt.u8 " weights ", [r0]\n\t"
#define LOAD_1 LOAD_LAST("q0")
#define LOAD_2 "vldrb.u8 q0, [r0], #16\n\t" LOAD_LAST("q1")
#define LOAD_3 "vldrb.u8 q0, [r0], #16\n\tvldrb.u8 q1, [r0], #16\n\t" LOAD_LAST("q2")
#define LOAD_4                                                                                     \
    "vldrb.u8 q0, [r0], #16\n\tvldrb.u8 q1, [r0], #16\n\tvldrb.u8 q2, [r0], #16\n\t" LOAD_LAST(    \
        "q"                                                                                        \
        "3")

#define BELOW_PLAIN
#define BELOW_GENERAL FERRULE_MVE_BELOW("q6", "q4") FERRULE_MVE_BELOW("q7", "q4")
#define CLAMP_PLAIN   "vqmovnb.s16 q6, q6\n\t"
#define CLAMP_GENERAL                                                                              \
    "ldrd r0, r2, [r11, #96]\n\t"                                                                  \
    "vdup.16 q4, r0\n\t"                                                                           \
    "vdup.16 q7, r2\n\t"                                                                           \
    "vmax.s16 q6, q6, q4\n\t"                                                                      \
    "vmin.s16 q6, q6, q7\n\t"

/*
 * Lines are copied by collecting 8 pixels, and distributing them over their places; the loops are
 * predicated. Then 8 windows at a time: their sums are in the even core registers, in the order of
 * the pixels; the second four of the last ones are left out if no pixel needs them. The last vector
 * is stored in part, and may have read behind the last window.
 */
#define PLANE(load, window, below, clamp)                                                          \
    "push {r4-r11, lr}\n\t"                                                                        \
    "vpush {d8-d15}\n\t"                                                                           \
    "mov r11, r0\n\t"                                                                              \
    "1:\n\t" /* a line of the output */                                                            \
    "ldr r10, [r11, #20]\n\t"                                                                      \
    "cmp r10, #0\n\t"                                                                              \
    "beq.w 8f\n\t"                                                                                 \
    "ldrd r6, r7, [r11, #40]\n\t"                                                                  \
    "ldr r12, [r11, #76]\n\t"                                                                      \
    "movs r0, #0\n\t"                                                                              \
    "vidup.u16 q1, r0, #1\n\t"                                                                     \
    "vmul.i16 q2, q1, r6\n\t"                                                                      \
    "vmul.i16 q1, q1, r7\n\t"                                                                      \
    "vdup.16 q3, r12\n\t"                                                                          \
    "ldrd r1, r2, [r11]\n\t"                                                                       \
    "ldrd r3, r4, [r11, #28]\n\t"                                                                  \
    "ldr r5, [r11, #36]\n\t"                                                                       \
    "ldr r9, [r11, #24]\n\t"                                                                       \
    "lsls r6, r6, #3\n\t"                                                                          \
    "lsl r8, r7, #3\n\t"                                                                           \
    "2:\n\t" /* a line that is copied */                                                           \
    "mla r0, r3, r7, r2\n\t"                                                                       \
    "mov r12, r2\n\t"                                                                              \
    "wlstp.16 lr, r3, 4f\n\t"                                                                      \
    "3:\n\t"                                                                                       \
    "vstrb.16 q3, [r12, q1]\n\t"                                                                   \
    "add r12, r12, r8\n\t"                                                                         \
    "letp lr, 3b\n\t"                                                                              \
    "4:\n\t"                                                                                       \
    "mov r12, r1\n\t"                                                                              \
    "wlstp.16 lr, r4, 6f\n\t"                                                                      \
    "5:\n\t"                                                                                       \
    "vldrb.u16 q0, [r12, q2]\n\t"                                                                  \
    "add r12, r12, r6\n\t"                                                                         \
    "vstrb.16 q0, [r0, q1]\n\t"                                                                    \
    "add r0, r0, r8\n\t"                                                                           \
    "letp lr, 5b\n\t"                                                                              \
    "6:\n\t"                                                                                       \
    "add r0, r3, r4\n\t"                                                                           \
    "mla r0, r0, r7, r2\n\t"                                                                       \
    "wlstp.16 lr, r5, 7f\n\t"                                                                      \
    "6:\n\t"                                                                                       \
    "vstrb.16 q3, [r0, q1]\n\t"                                                                    \
    "add r0, r0, r8\n\t"                                                                           \
    "letp lr, 6b\n\t"                                                                              \
    "7:\n\t"                                                                                       \
    "add r1, r1, r9\n\t"                                                                           \
    "adds r2, #1\n\t"                                                                              \
    "subs r10, #1\n\t"                                                                             \
    "bne 2b\n\t"                                                                                   \
    "strd r1, r2, [r11]\n\t"                                                                       \
    "ldr r7, [r11, #16]\n\t"                                                                       \
    "cmp r7, #0\n\t"                                                                               \
    "beq.w 10f\n\t"                                                                                \
    "8:\n\t"                                                                                       \
    "ldrd r1, r5, [r11, #8]\n\t"                                                                   \
    "ldr r3, [r11, #48]\n\t"                                                                       \
    "ldrd r7, r9, [r11, #56]\n\t"                                                                  \
    "movs r0, #0\n\t"                                                                              \
    "vidup.u16 q5, r0, #1\n\t"                                                                     \
    "vmul.i16 q5, q5, r9\n\t"                                                                      \
    "lsl r9, r9, #3\n\t"                                                                           \
    "ldrd r0, r2, [r11, #68]\n\t" load "9:\n\t" /* eight windows */                                \
        WINDOWS(window) "vmov q6[2], q6[0], r0, r8\n\t"                                            \
                        "vmov q6[3], q6[1], r4, r12\n\t"                                           \
                        "vmov q7[2], q7[0], r2, r10\n\t"                                           \
                        "vmov q7[3], q7[1], r6, lr\n\t"                                            \
                        "ldrd r0, r2, [r11, #80]\n\t"                                              \
                        "ldrd r4, r6, [r11, #88]\n\t"                                              \
                        "vadd.i32 q6, q6, r0\n\t"                                                  \
                        "vadd.i32 q7, q7, r0\n\t"                                                  \
                        "vqrdmulh.s32 q6, q6, r2\n\t"                                              \
                        "vqrdmulh.s32 q7, q7, r2\n\t" below "vrshl.s32 q6, r4\n\t"                 \
                        "vrshl.s32 q7, r4\n\t"                                                     \
                        "vqmovnb.s32 q6, q6\n\t"                                                   \
                        "vqmovnt.s32 q6, q7\n\t"                                                   \
                        "vqadd.s16 q6, q6, r6\n\t" clamp "vctp.16 r7\n\t"                          \
                        "vpst\n\t"                                                                 \
                        "vstrbt.16 q6, [r5, q5]\n\t"                                               \
                        "add r5, r5, r9\n\t"                                                       \
                        "subs r7, #8\n\t"                                                          \
                        "bgt.w 9b\n\t"                                                             \
                        "ldrd r1, r5, [r11, #8]\n\t"                                               \
                        "ldr r3, [r11, #52]\n\t"                                                   \
                        "ldr r7, [r11, #64]\n\t"                                                   \
                        "add r1, r1, r3\n\t"                                                       \
                        "add r5, r5, r7\n\t"                                                       \
                        "strd r1, r5, [r11, #8]\n\t"                                               \
                        "ldr r7, [r11, #16]\n\t"                                                   \
                        "subs r7, #1\n\t"                                                          \
                        "str r7, [r11, #16]\n\t"                                                   \
                        "bne.w 1b\n\t"                                                             \
                        "10:\n\t"                                                                  \
                        "vpop {d8-d15}\n\t"                                                        \
                        "pop {r4-r11, pc}\n\t"

#define DEFINE(form, vectors, below, clamp)                                                        \
    __attribute__((naked)) void ferrule_mve_plane_##form##_##vectors(                              \
        __attribute__((unused)) struct ferrule_mve_plane *plane)                                   \
    {                                                                                              \
        __asm__(PLANE(LOAD_##vectors, WINDOW_##vectors, below, clamp));                            \
    }

#else

/* Copy one line, and advance to the next one. */
static void copy_line(struct ferrule_mve_plane *plane)
{
    int32_t length = plane->before + plane->count + plane->after;

    for (int32_t x = 0; x < length; ++x) {
        int32_t place = x - plane->before;
        bool inside = place >= 0 && place < plane->count;

        plane->target[x * plane->target_step] =
            inside ? plane->source[place * plane->source_step] : (int8_t)plane->input_zero_point;
    }
    plane->source += plane->source_line;
    ++plane->target;
}

static void run(struct ferrule_mve_plane *plane, int32_t vectors)
{
    int32_t taps = FERRULE_MVE_BYTES * (vectors - 1) + plane->last_weights;
    bool only_copy = plane->lines == 0;

    do {
        for (int32_t i = 0; i < plane->copies; ++i) {
            copy_line(plane);
        }
        for (int32_t x = 0; !only_copy && x < plane->output_count; ++x) {
            int32_t sum = plane->bias;

            for (int32_t k = 0; k < taps; ++k) {
                sum += plane->windows[x * plane->window_step + k] * plane->weights[k];
            }
            plane->output[x * plane->output_step] =
                ferrule_mve_store(sum, plane->multiplier, plane->shift, &plane->limits);
        }
        if (only_copy) {
            return;
        }
        plane->windows += plane->window_line;
        plane->output += plane->output_line;
    } while (--plane->lines > 0);
}

#define DEFINE(form, vectors, below, clamp)                                                        \
    void ferrule_mve_plane_##form##_##vectors(struct ferrule_mve_plane *plane)                     \
    {                                                                                              \
        run(plane, vectors);                                                                       \
    }

#endif

DEFINE(plain, 1, BELOW_PLAIN, CLAMP_PLAIN)
DEFINE(plain, 2, BELOW_PLAIN, CLAMP_PLAIN)
DEFINE(plain, 3, BELOW_PLAIN, CLAMP_PLAIN)
DEFINE(plain, 4, BELOW_PLAIN, CLAMP_PLAIN)
DEFINE(general, 1, BELOW_GENERAL, CLAMP_GENERAL)
DEFINE(general, 2, BELOW_GENERAL, CLAMP_GENERAL)
DEFINE(general, 3, BELOW_GENERAL, CLAMP_GENERAL)
DEFINE(general, 4, BELOW_GENERAL, CLAMP_GENERAL)
