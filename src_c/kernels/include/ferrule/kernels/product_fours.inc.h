/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Products of two int8 inputs, four elements at a time, for the DSP extension. A kernel's
 * source file defines FERRULE_STEP, then includes this file.
 *
 * FERRULE_STEP  assembler of four products, which may use r8 to r12; r0 to r2 are the inputs and
 * the output, r3 to r7 the next members of struct fours; `above` and `lowest` are on the stack
 */
#ifndef FERRULE_STEP
#error "define FERRULE_STEP"
#endif

/* Results above the lower limit are saturated to 8 bits without sign; `above` then saturates those
 * beyond the upper limit, and `lowest` adds the lower limit less `above`, modulo 2^8. */
struct fours {
    const int8_t *a;
    const int8_t *b;
    int8_t *output;
    uint32_t first; /* the offset or zero point of the first input, twice */
    uint32_t second;
    int32_t multiplier;
    int32_t constant;
    uint32_t last;     /* of the arithmetic: a shift, or a mask */
    const int8_t *end; /* of the first input */
    uint32_t above;
    uint32_t lowest;
};

/* Of a positive number of fours. */
static void multiply_fours(const struct fours *fours)
{
    register const struct fours *r0 __asm__("r0") = fours;

    __asm__ volatile("push {r4-r11}\n\t"
                     "ldrd r8, r9, [r0, #36]\n\t"
                     "push {r8, r9}\n\t"
                     "ldr lr, [r0, #32]\n\t"
                     "ldm r0, {r0-r7}\n\t"
                     "sub r8, lr, r0\n\t"
                     "tst r8, #4\n\t"
                     "bne 2f\n"
                     "1:\n\t" FERRULE_STEP "2:\n\t" FERRULE_STEP "cmp r0, lr\n\t"
                     "bne 1b\n\t"
                     "pop {r8, r9}\n\t"
                     "pop {r4-r11}"
                     : "+r"(r0)
                     :
                     : "r1", "r2", "r3", "r12", "lr", "cc", "memory");
}
