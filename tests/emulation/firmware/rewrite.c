/* SPDX-License-Identifier: Apache-2.0 */
/* Runs code in RAM, rewrites it with different instructions of the same total size, and runs it
 * again; sends the counts. */
#include "guest.h"

#define BX_LR 0x4770u
#define NOP   0xBF00u

static uint16_t code[8] __attribute__((aligned(8)));

static uint32_t measure(const uint16_t *halfwords)
{
    for (uint32_t i = 0; i < 8; ++i) {
        ((volatile uint16_t *)code)[i] = halfwords[i];
    }
    __asm volatile("dsb\n\tisb" ::: "memory");
    const uint32_t before = REGISTER(CYCCNT);
    ((void (*)(void))((uintptr_t)code | 1u))();
    return REGISTER(CYCCNT) - before;
}

int main(void)
{
    static const uint16_t narrow[8] = {NOP, NOP, NOP, NOP, NOP, NOP, BX_LR, NOP};
    static const uint16_t wide[8] = {0xF3AF, 0x8000, 0xF3AF, 0x8000,
                                     0xF3AF, 0x8000, BX_LR,  NOP}; /* nop.w */
    start_uart();
    start_cycle_counter();
    put_word(measure(narrow));
    put_word(measure(wide));
    put_word(measure(narrow));
    for (;;) {
        (void)get();
    }
}
