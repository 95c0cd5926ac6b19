/* SPDX-License-Identifier: Apache-2.0 */
/* Causes the kind of fault that TEST_FAULT selects. */

#include <stdint.h>

#define UNMAPPED  1
#define UNDEFINED 2
#define OVERFLOW  3
#define AT_TOP    4 /* sp at the top: the exception frame just fits */
#define ABOVE_TOP 5 /* sp 8 bytes above the top: 8 bytes of the frame do not fit */

int main(void);
uint32_t recurse(volatile uint32_t *above);
extern uint32_t ferrule_stack_top[];

__attribute__((noinline)) uint32_t recurse(volatile uint32_t *above)
{
    volatile uint32_t frame[256];

    frame[0] = *above + 1;
    return frame[0] == 0 ? 0 : recurse(frame) + frame[0];
}

int main(void)
{
    volatile uint32_t start = 1;

#if TEST_FAULT == UNMAPPED
    *(volatile uint32_t *)TEST_ADDRESS = start;
#elif TEST_FAULT == UNDEFINED
    start = 2;
    __asm__ volatile("udf #0");
#elif TEST_FAULT == OVERFLOW
    start = recurse(&start);
#elif TEST_FAULT == AT_TOP || TEST_FAULT == ABOVE_TOP
    __asm__ volatile("mov r12, #0\n\tmov sp, %0\n\tudf #0" ::"r"(
        (uint32_t)ferrule_stack_top + (TEST_FAULT == ABOVE_TOP ? 8u : 0u)));
#endif
    return (int)start;
}
