/* SPDX-License-Identifier: Apache-2.0 */
/* Runs into a fault of the kind that TEST_FAULT says. */

#include <stdint.h>

#define UNMAPPED  1
#define UNDEFINED 2
#define OVERFLOW  3

int main(void);
uint32_t recurse(volatile uint32_t *above);

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
    *(volatile uint32_t *)0xF0000000u = start;
#elif TEST_FAULT == UNDEFINED
    start = 2;
    __asm__ volatile("udf #0");
#elif TEST_FAULT == OVERFLOW
    start = recurse(&start);
#endif
    return (int)start;
}
