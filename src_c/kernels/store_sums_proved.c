/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/kernels/store_sums.h"

#define UNUSED __attribute__((unused))

#if FERRULE_HAS_DSP
/* r0: sums, r1: values left, r2: multiplier, r3: the output, r4 to r7: values, r12 and lr: bytes
 * from an output to the next one and to the third one. The fifth argument is above the five saved
 * registers. */
__attribute__((naked)) void
ferrule_store_sums_proved(const int32_t *sums UNUSED, int32_t count UNUSED,
                          const int32_t *scale UNUSED, int8_t *output UNUSED,
                          int32_t step_bytes UNUSED, const struct ferrule_output_s8 *limits UNUSED)
{
    __asm__ volatile("push {r4, r5, r6, r7, lr}\n\t"
                     "ldr r12, [sp, #20]\n\t"
                     "ldr r2, [r2]\n\t"
                     "bic r2, r2, #0x80000000\n\t"
                     "add lr, r12, r12, lsl #1\n\t"
                     "subs r1, #4\n\t"
                     "blt 2f\n"
                     "1:\n\t"
                     "ldmia r0!, {r4, r5, r6, r7}\n\t" FERRULE_PROVED_COMPLETE("r4", "r5", "r2")
                         FERRULE_PROVED_COMPLETE(
                             "r6", "r7", "r2") "strb r4, [r3]\n\t"
                                               "strb r5, [r3, r12]\n\t"
                                               "strb r6, [r3, r12, lsl #1]\n\t"
                                               "strb r7, [r3, lr]\n\t"
                                               "add r3, r3, r12, lsl #2\n\t"
                                               "subs r1, #4\n\t"
                                               "bge 1b\n"
                                               "2:\n\t"
                                               "adds r1, #4\n\t"
                                               "beq 4f\n"
                                               "3:\n\t"
                                               "ldr r4, [r0], #4\n\t" FERRULE_PROVED_COMPLETE_ONE(
                                                   "r4", "r2") "strb r4, [r3]\n\t"
                                                               "add r3, r12\n\t"
                                                               "subs r1, #1\n\t"
                                                               "bne 3b\n"
                                                               "4:\n\t"
                                                               "pop {r4, r5, r6, r7, pc}\n\t");
}
#else
void ferrule_store_sums_proved(const int32_t *sums, int32_t count, const int32_t *scale,
                               int8_t *output, int32_t step_bytes,
                               const struct ferrule_output_s8 *limits UNUSED)
{
    const int32_t multiplier = (int32_t)((uint32_t)scale[0] & (uint32_t)INT32_MAX);

    for (int32_t i = 0; i < count; ++i) {
        *output = ferrule_proved_s8((uint32_t)sums[i], multiplier);
        output += step_bytes;
    }
}
#endif
