/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/columns.h"

#define UNUSED __attribute__((unused))

#if FERRULE_HAS_THUMB2
/* r0: columns, r1 and r2: sums of two outputs, r3: where they go, r4 to r12: weights, lr: data; the
 * stack has the end of the sums. */
#define ENTRY                                                                                      \
    "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n\t"                                          \
    "add r2, r3, r2, lsl #2\n\t"                                                                   \
    "str r2, [sp]\n\t"                                                                             \
    "ldrsb r4, [r1], #1\n\t"                                                                       \
    "ldrsb r5, [r1], #1\n\t"                                                                       \
    "ldrsb r6, [r1], #1\n\t"                                                                       \
    "ldrsb r7, [r1], #1\n\t"                                                                       \
    "ldrsb r8, [r1], #1\n\t"                                                                       \
    "ldrsb r9, [r1], #1\n\t"                                                                       \
    "ldrsb r10, [r1], #1\n\t"                                                                      \
    "ldrsb r11, [r1], #1\n\t"                                                                      \
    "ldrsb r12, [r1], #1\n"                                                                        \
    "1:\n\t"
#define DATA(offset)       "ldr lr, [r0, #" offset "]\n\t"
#define BEGIN(sum, weight) "mul " sum ", lr, " weight "\n\t"
#define ADD(sum, weight)   "mla " sum ", lr, " weight ", " sum "\n\t"
#define END(step)                                                                                  \
    "strd r1, r2, [r3], #8\n\t"                                                                    \
    "ldr lr, [sp]\n\t"                                                                             \
    "add r0, r0, #" step "\n\t"                                                                    \
    "cmp r3, lr\n\t"                                                                               \
    "bne 1b\n\t"                                                                                   \
    "pop {r3, r4, r5, r6, r7, r8, r9, r10, r11, pc}\n\t"
#define FIRST  "r1"
#define SECOND "r2"
#define W00    "r4"
#define W01    "r5"
#define W02    "r6"
#define W10    "r7"
#define W11    "r8"
#define W12    "r9"
#define W20    "r10"
#define W21    "r11"
#define W22    "r12"
#elif FERRULE_HAS_THUMB1
/* r0: columns, r1: data, r2: a product, r3 and r4: sums of two outputs, r5 to r12 and lr: weights;
 * the stack has where the sums go and their end. */
#define WEIGHT(target)                                                                             \
    "ldrsb r4, [r1, r3]\n\t"                                                                       \
    "mov " target ", r4\n\t"                                                                       \
    "adds r3, #1\n\t"
#define ENTRY                                                                                      \
    ".syntax unified\n\t"                                                                          \
    "push {r3, r4, r5, r6, r7, lr}\n\t"                                                            \
    "mov r4, r8\n\t"                                                                               \
    "mov r5, r9\n\t"                                                                               \
    "mov r6, r10\n\t"                                                                              \
    "mov r7, r11\n\t"                                                                              \
    "push {r4, r5, r6, r7}\n\t"                                                                    \
    "lsls r2, r2, #2\n\t"                                                                          \
    "adds r2, r2, r3\n\t"                                                                          \
    "push {r2, r3}\n\t"                                                                            \
    "movs r3, #0\n\t" WEIGHT("r5") WEIGHT("r6") WEIGHT("r7") WEIGHT("r8") WEIGHT("r9")             \
        WEIGHT("r10") WEIGHT("r11") WEIGHT("r12") WEIGHT("lr") "1:\n\t"
#define DATA(offset) "ldr r1, [r0, #" offset "]\n\t"
#define BEGIN(sum, weight)                                                                         \
    "mov " sum ", " weight "\n\t"                                                                  \
    "muls " sum ", r1, " sum "\n\t"
#define ADD(sum, weight)                                                                           \
    "mov r2, " weight "\n\t"                                                                       \
    "muls r2, r1, r2\n\t"                                                                          \
    "adds " sum ", " sum ", r2\n\t"
#define END(step)                                                                                  \
    "ldr r1, [sp, #4]\n\t"                                                                         \
    "ldr r2, [sp]\n\t"                                                                             \
    "stm r1!, {r3, r4}\n\t"                                                                        \
    "str r1, [sp, #4]\n\t"                                                                         \
    "adds r0, #" step "\n\t"                                                                       \
    "cmp r1, r2\n\t"                                                                               \
    "bne 1b\n\t"                                                                                   \
    "pop {r2, r3, r4, r5, r6, r7}\n\t"                                                             \
    "mov r8, r4\n\t"                                                                               \
    "mov r9, r5\n\t"                                                                               \
    "mov r10, r6\n\t"                                                                              \
    "mov r11, r7\n\t"                                                                              \
    "pop {r3, r4, r5, r6, r7, pc}\n\t"
#define FIRST  "r3"
#define SECOND "r4"
#define W00    "r5"
#define W01    "r6"
#define W02    "r7"
#define W10    "r8"
#define W11    "r9"
#define W12    "r10"
#define W20    "r11"
#define W21    "r12"
#define W22    "lr"
#endif

#ifdef ENTRY
__attribute__((naked)) void ferrule_multiply_columns_by1(const int32_t *columns UNUSED,
                                                         const int8_t *weights UNUSED,
                                                         int32_t outputs UNUSED,
                                                         int32_t *sums UNUSED)
{
    __asm__ volatile(
        ENTRY DATA("0") BEGIN(FIRST, W00) DATA("4") ADD(FIRST, W01) DATA("8") ADD(FIRST, W02)
            DATA("12") ADD(FIRST, W10) BEGIN(SECOND, W00) DATA("16") ADD(FIRST, W11)
                ADD(SECOND, W01) DATA("20") ADD(FIRST, W12) ADD(SECOND, W02) DATA("24")
                    ADD(FIRST, W20) ADD(SECOND, W10) DATA("28") ADD(FIRST, W21) ADD(SECOND, W11)
                        DATA("32") ADD(FIRST, W22) ADD(SECOND, W12) DATA("36") ADD(SECOND, W20)
                            DATA("40") ADD(SECOND, W21) DATA("44") ADD(SECOND, W22) END("24"));
}

__attribute__((naked)) void ferrule_multiply_columns_by2(const int32_t *columns UNUSED,
                                                         const int8_t *weights UNUSED,
                                                         int32_t outputs UNUSED,
                                                         int32_t *sums UNUSED)
{
    __asm__ volatile(ENTRY DATA("0") BEGIN(FIRST, W00) DATA("4") ADD(FIRST, W01) DATA("8") ADD(
        FIRST, W02) DATA("12") ADD(FIRST, W10) DATA("16") ADD(FIRST, W11) DATA("20") ADD(FIRST, W12)
                         DATA("24") ADD(FIRST, W20) BEGIN(SECOND, W00) DATA("28") ADD(FIRST, W21)
                             ADD(SECOND, W01) DATA("32") ADD(FIRST, W22) ADD(SECOND, W02) DATA("36")
                                 ADD(SECOND, W10) DATA("40") ADD(SECOND, W11) DATA("44")
                                     ADD(SECOND, W12) DATA("48") ADD(SECOND, W20) DATA("52")
                                         ADD(SECOND, W21) DATA("56") ADD(SECOND, W22) END("48"));
}
#else
static void multiply(const int32_t *columns, int32_t step, const int8_t *weights, int32_t outputs,
                     int32_t *sums)
{
    for (int32_t i = 0; i < outputs; ++i) {
        sums[i] = 0;
        for (int32_t k = 0; k < FERRULE_LINES * FERRULE_LINES; ++k) {
            sums[i] += columns[k] * weights[k];
        }
        columns += FERRULE_LINES * step;
    }
}

void ferrule_multiply_columns_by1(const int32_t *columns, const int8_t *weights, int32_t outputs,
                                  int32_t *sums)
{
    multiply(columns, 1, weights, outputs, sums);
}

void ferrule_multiply_columns_by2(const int32_t *columns, const int8_t *weights, int32_t outputs,
                                  int32_t *sums)
{
    multiply(columns, 2, weights, outputs, sums);
}
#endif
