/* SPDX-License-Identifier: Apache-2.0 */
/* An int8 dot product in a loop, the main work of a network. With TICK, SysTick interrupts it
 * every TICK instructions. */
#include "guest.h"

enum { ELEMENTS = 4096, ROUNDS = 10000 };

static int8_t left[ELEMENTS];
static int8_t right[ELEMENTS];

__attribute__((noinline)) int32_t dot_product(const int8_t *a, const int8_t *b, uint32_t elements)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < elements; ++i) {
        sum += (int32_t)a[i] * b[i];
    }
    return sum;
}

__attribute__((noinline)) void put_result(uint32_t sum)
{
    put_word(sum);
}

#if !defined(TICK)
#define TICK 0
#endif

static volatile uint32_t ticks;
static volatile uint32_t period = TICK; /* 0: the same code without ticks */

void ferrule_systick_handler(void);
void ferrule_systick_handler(void)
{
    ++ticks;
}

static void start_ticks(void)
{
    if (period != 0) {
        REGISTER(0xE000E014u) = period - 1;
        REGISTER(0xE000E018u) = 0;
        REGISTER(0xE000E010u) = 7;
    }
}

int main(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < ELEMENTS; ++i) {
        left[i] = (int8_t)i;
        right[i] = (int8_t)(7u * i);
    }
    start_uart();
    start_ticks();
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        __asm volatile("" ::: "memory");
        sum += (uint32_t)dot_product(left, right, ELEMENTS);
    }
    put_result(sum);
    for (;;) {
        (void)get();
    }
}
