/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Sums of DEPTHWISE_CONV_2D over words in scratch, four neighbouring ones at a time: see
 * depthwise_window.h. A source file defines these macros, then includes this file:
 *
 * FERRULE_KERNEL                       name of the function
 * FERRULE_HOP                          words between neighbouring sums, 1 or 2
 * FERRULE_HAS_THUMB2_WINDOW            whether to use the assembler for Armv7-M
 * FERRULE_HAS_THUMB1_WINDOW            whether to use that for Armv6-M
 * FERRULE_MULTIPLY_ADD                 the instruction that adds the product of two words, as text
 * FERRULE_ADDED(data, weights, sum)    the same in C
 */
#include "ferrule/kernels/depthwise_window.h"

#if !defined(FERRULE_KERNEL) || !defined(FERRULE_HOP) || !defined(FERRULE_HAS_THUMB2_WINDOW) ||    \
    !defined(FERRULE_HAS_THUMB1_WINDOW) || !defined(FERRULE_MULTIPLY_ADD) ||                       \
    !defined(FERRULE_ADDED)
#error "define the macros listed at the top of this file"
#endif

#define UNUSED __attribute__((unused))
/* From the words of a block of sums to those of the next one, in bytes. */
#define BLOCK_BYTES "#" FERRULE_TEXT(FERRULE_BLOCK_BYTES)

#if FERRULE_HAS_THUMB2_WINDOW
/* r0: stream, r1: the words under the first of four sums, r2 to r5: sums, r6 to r10: data, r11 to
 * lr: weights. The stack has the first record, blocks left, and where the sums go. Multiplications
 * leave the carry, which the flag of a list's last record sets. */
#define ADD(sum, data, weights) FERRULE_MULTIPLY_ADD " " sum ", " data ", " weights ", " sum "\n\t"
#define BEGIN                                                                                      \
    "ldr r0, [sp]\n\t"                                                                             \
    "ldmia r0!, {r2, r3, r4, r5}\n"
#define PLACE                                                                                      \
    "lsls r6, r6, #1\n\t"                                                                          \
    "add r6, r1\n\t"
#if FERRULE_HOP == 1
#define FERRULE_BLOCK_BYTES 16
#define THREE                                                                                      \
    "ldmia r0!, {r6, r11, r12, lr}\n\t" PLACE                                                      \
    "ldmia r6!, {r7, r8, r9, r10}\n\t" ADD("r2", "r7", "r11") ADD("r2", "r8", "r12")               \
        ADD("r2", "r9", "lr") ADD("r3", "r8", "r11") ADD("r3", "r9", "r12") ADD("r3", "r10", "lr") \
            ADD("r4", "r9", "r11") ADD("r4", "r10", "r12")                                         \
                ADD("r5", "r10", "r11") "ldmia r6, {r6, r7}\n\t" ADD("r4", "r6", "lr")             \
                    ADD("r5", "r6", "r12") ADD("r5", "r7", "lr")
#define TWO                                                                                        \
    "ldmia r0!, {r6, r11, r12}\n\t" PLACE                                                          \
    "ldmia.w r6, {r6, r7, r8, r9, r10}\n\t" ADD("r2", "r6", "r11") ADD("r2", "r7", "r12")          \
        ADD("r3", "r7", "r11") ADD("r3", "r8", "r12") ADD("r4", "r8", "r11")                       \
            ADD("r4", "r9", "r12") ADD("r5", "r9", "r11") ADD("r5", "r10", "r12")
#else
#define FERRULE_BLOCK_BYTES 32
#define THREE                                                                                      \
    "ldmia r0!, {r6, r11, r12, lr}\n\t" PLACE                                                      \
    "ldmia r6!, {r7, r8, r9, r10}\n\t" ADD("r2", "r7", "r11") ADD("r2", "r8", "r12")               \
        ADD("r2", "r9", "lr") ADD("r3", "r9", "r11")                                               \
            ADD("r3", "r10", "r12") "ldmia r6!, {r7, r8, r9, r10}\n\t" ADD("r3", "r7", "lr")       \
                ADD("r4", "r7", "r11") ADD("r4", "r8", "r12") ADD("r4", "r9", "lr")                \
                    ADD("r5", "r9", "r11")                                                         \
                        ADD("r5", "r10", "r12") "ldr r6, [r6]\n\t" ADD("r5", "r6", "lr")
#define TWO                                                                                        \
    "ldmia r0!, {r6, r11, r12}\n\t" PLACE                                                          \
    "ldmia r6!, {r7, r8, r9, r10}\n\t" ADD("r2", "r7", "r11") ADD("r2", "r8", "r12")               \
        ADD("r3", "r9", "r11")                                                                     \
            ADD("r3", "r10", "r12") "ldmia.w r6, {r7, r8, r9, r10}\n\t" ADD("r4", "r7", "r11")     \
                ADD("r4", "r8", "r12") ADD("r5", "r9", "r11") ADD("r5", "r10", "r12")
#endif
#define END(again)                                                                                 \
    "ldrd r6, r7, [sp, #4]\n\t"                                                                    \
    "stmia r7!, {r2, r3, r4, r5}\n\t"                                                              \
    "adds r1, " BLOCK_BYTES "\n\t"                                                                 \
    "subs r6, #1\n\t"                                                                              \
    "strd r6, r7, [sp, #4]\n\t"                                                                    \
    "bne " again "\n\t"                                                                            \
    "add sp, #12\n\t"                                                                              \
    "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"

__attribute__((naked)) void FERRULE_KERNEL(const uint32_t *data UNUSED,
                                           const int32_t *stream UNUSED, int32_t blocks UNUSED,
                                           int32_t *sums UNUSED)
{
    __asm__ volatile("push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"
                     "ldmia r1!, {r4, r5}\n\t"
                     "push {r1, r2, r3}\n\t"
                     "mov r1, r0\n\t"
                     "cmp r4, #0\n\t"
                     "beq 6f\n\t"
                     "cmp r5, #0\n\t"
                     "bne 3f\n"
                     "1:\n\t" BEGIN "2:\n\t" THREE
                     "bcc 2b\n\t" END("1b") "3:\n\t" BEGIN "4:\n\t" THREE "bcc 4b\n"
                                            "5:\n\t" TWO
                                            "bcc 5b\n\t" END("3b") "6:\n\t" BEGIN "7:\n\t" TWO
                                                                   "bcc 7b\n\t" END("6b"));
}
#elif FERRULE_HAS_THUMB1_WINDOW
/* r0: stream, r1: data, r2 to r4: weights, r5 and r7: data, r6: a product, r8 to r11: sums, r12:
 * the words under the first sum, lr: the end of the records of a kind. The stack has the first
 * record, the end of both kinds, blocks left, and where the sums go. LAST leaves no data. */
#define ADD(sum, data, weights)                                                                    \
    "mov r6, " data "\n\t"                                                                         \
    "muls r6, " weights "\n\t"                                                                     \
    "add " sum ", r6\n\t"
#define LAST(sum, data, weights)                                                                   \
    "muls " data ", " weights "\n\t"                                                               \
    "add " sum ", " data "\n\t"
#define PLACE                                                                                      \
    "lsls r1, r1, #1\n\t"                                                                          \
    "add r1, r12\n\t"
#define LOAD_TWO "ldmia r1!, {r5, r7}\n\t"
#if FERRULE_HOP == 1
#define FERRULE_BLOCK_BYTES 16
#define THREE                                                                                      \
    "ldmia r0!, {r1, r2, r3, r4}\n\t" PLACE LOAD_TWO LAST("r8", "r5", "r2") ADD("r8", "r7", "r3")  \
        LAST("r9", "r7", "r2") LOAD_TWO ADD("r8", "r5", "r4") ADD("r9", "r5", "r3")                \
            LAST("r10", "r5", "r2") ADD("r9", "r7", "r4") ADD("r10", "r7", "r3")                   \
                LAST("r11", "r7", "r2") LOAD_TWO ADD("r10", "r5", "r4") LAST("r11", "r5", "r3")    \
                    LAST("r11", "r7", "r4")
#define TWO                                                                                        \
    "ldmia r0!, {r1, r2, r3}\n\t" PLACE LOAD_TWO LAST("r8", "r5", "r2") ADD("r8", "r7", "r3")      \
        LAST("r9", "r7", "r2") LOAD_TWO ADD("r9", "r5", "r3") LAST("r10", "r5", "r2")              \
            ADD("r10", "r7", "r3")                                                                 \
                LAST("r11", "r7", "r2") "ldr r5, [r1]\n\t" LAST("r11", "r5", "r3")
#else
#define FERRULE_BLOCK_BYTES 32
#define THREE                                                                                      \
    "ldmia r0!, {r1, r2, r3, r4}\n\t" PLACE LOAD_TWO LAST("r8", "r5", "r2") LAST("r8", "r7", "r3") \
        LOAD_TWO ADD("r8", "r5", "r4") LAST("r9", "r5", "r2") LAST("r9", "r7", "r3")               \
            LOAD_TWO ADD("r9", "r5", "r4") LAST("r10", "r5", "r2") LAST("r10", "r7", "r3")         \
                LOAD_TWO ADD("r10", "r5", "r4") LAST("r11", "r5", "r2")                            \
                    LAST("r11", "r7", "r3") "ldr r5, [r1]\n\t" LAST("r11", "r5", "r4")
#define TWO                                                                                        \
    "ldmia r0!, {r1, r2, r3}\n\t" PLACE LOAD_TWO LAST("r8", "r5", "r2") LAST("r8", "r7", "r3")     \
        LOAD_TWO LAST("r9", "r5", "r2") LAST("r9", "r7", "r3") LOAD_TWO LAST("r10", "r5", "r2")    \
            LAST("r10", "r7", "r3") LOAD_TWO LAST("r11", "r5", "r2") LAST("r11", "r7", "r3")
#endif

__attribute__((naked)) void FERRULE_KERNEL(const uint32_t *data UNUSED,
                                           const int32_t *stream UNUSED, int32_t blocks UNUSED,
                                           int32_t *sums UNUSED)
{
    __asm__ volatile(".syntax unified\n\t"
                     "push {r4, r5, r6, r7, lr}\n\t"
                     "mov r4, r8\n\t"
                     "mov r5, r9\n\t"
                     "mov r6, r10\n\t"
                     "mov r7, r11\n\t"
                     "push {r4, r5, r6, r7}\n\t"
                     "mov r12, r0\n\t"
                     "ldmia r1!, {r6, r7}\n\t"
                     "mov r0, r1\n\t"
                     "adds r0, #16\n\t"
                     "adds r6, r6, r0\n\t"
                     "adds r7, r7, r6\n\t"
                     "push {r2, r3}\n\t"
                     "push {r1, r6, r7}\n"
                     "1:\n\t"
                     "ldr r0, [sp]\n\t"
                     "ldmia r0!, {r2, r3, r4, r5}\n\t"
                     "mov r8, r2\n\t"
                     "mov r9, r3\n\t"
                     "mov r10, r4\n\t"
                     "mov r11, r5\n\t"
                     "ldr r1, [sp, #4]\n\t"
                     "mov lr, r1\n\t"
                     "cmp r0, lr\n\t"
                     "beq 3f\n"
                     "2:\n\t" THREE "cmp r0, lr\n\t"
                     "bne 2b\n"
                     "3:\n\t"
                     "ldr r1, [sp, #8]\n\t"
                     "mov lr, r1\n\t"
                     "cmp r0, lr\n\t"
                     "beq 5f\n"
                     "4:\n\t" TWO "cmp r0, lr\n\t"
                     "bne 4b\n"
                     "5:\n\t"
                     "ldr r1, [sp, #16]\n\t"
                     "mov r2, r8\n\t"
                     "mov r3, r9\n\t"
                     "mov r4, r10\n\t"
                     "mov r5, r11\n\t"
                     "stmia r1!, {r2, r3, r4, r5}\n\t"
                     "str r1, [sp, #16]\n\t"
                     "mov r1, r12\n\t"
                     "adds r1, " BLOCK_BYTES "\n\t"
                     "mov r12, r1\n\t"
                     "ldr r1, [sp, #12]\n\t"
                     "subs r1, #1\n\t"
                     "str r1, [sp, #12]\n\t"
                     "bne 1b\n\t"
                     "add sp, #20\n\t"
                     "pop {r4, r5, r6, r7}\n\t"
                     "mov r8, r4\n\t"
                     "mov r9, r5\n\t"
                     "mov r10, r6\n\t"
                     "mov r11, r7\n\t"
                     "pop {r4, r5, r6, r7, pc}\n\t");
}
#else
void FERRULE_KERNEL(const uint32_t *data, const int32_t *stream, int32_t blocks, int32_t *sums)
{
    const int32_t *const records = stream + FERRULE_WINDOW_HEADER;
    const int32_t *const twos = records + stream[0] / 4;
    const int32_t *const end = twos + stream[1] / 4;

    for (int32_t i = 0; i < blocks * FERRULE_WINDOW_SUMS; ++i) {
        const int32_t *record = records;
        uint32_t sum = (uint32_t)stream[2];

        while (record != end) {
            const uint32_t *place = data + ((uint32_t)record[0] & 0x7fffffffu) / 2;
            const int32_t words = record < twos ? 3 : 2;

            for (int32_t k = 1; k <= words; ++k) {
                sum = FERRULE_ADDED(*place++, (uint32_t)record[k], sum);
            }
            record += words + 1;
        }
        *sums++ = (int32_t)sum;
        data += FERRULE_HOP;
    }
}
#endif
