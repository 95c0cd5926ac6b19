/* SPDX-License-Identifier: Apache-2.0 */
/* Bit-band aliases of SRAM and peripherals: each word is one bit. */
#include "misdeed.h"

#define SRAM       0x20000000u
#define PERIPHERAL 0x40000000u

/* The alias of a bit of the word at an address, in the region that begins at `region`. */
#define ALIAS(region, address, bit)                                                                \
    ((region) + 0x02000000u + 32u * ((uint32_t)(address) - (region)) + 4u * (bit))
#define BAUDDIV (UART_BASE + 0x10u)

static volatile uint32_t words[2];

static void memory(void)
{
    say("memory\n");
    words[0] = 0x80000001u;
    for (uint32_t bit = 0; bit < 64; bit += 9) {
        note("bit", REGISTER(ALIAS(SRAM, words, bit)));
        REGISTER(ALIAS(SRAM, words, bit)) = 0xFFFFFFFFu - bit % 2;
        note("word", words[bit / 32]);
    }
    REGISTER(ALIAS(SRAM, words, 31)) = 0xFFFFFFFEu;
    note("cleared", words[0]);
    *(volatile uint8_t *)ALIAS(SRAM, words, 13) = 1;
    *(volatile uint16_t *)ALIAS(SRAM, words, 30) = 1;
    note("narrow", words[0]);
    note("byte", *(volatile uint8_t *)ALIAS(SRAM, words, 13));
    note("half", *(volatile uint16_t *)ALIAS(SRAM, words, 14));
    words[0] = 0x12345678u;
    for (uint32_t bit = 0; bit < 32; ++bit) {
        words[1] = words[1] << 1 | REGISTER(ALIAS(SRAM, words, 31 - bit));
    }
    note("copied", words[1]);
}

static void peripherals(void)
{
    say("peripherals\n");
    REGISTER(BAUDDIV) = 16;
    REGISTER(ALIAS(PERIPHERAL, BAUDDIV, 0)) = 1;
    note("register", REGISTER(BAUDDIV));
    REGISTER(ALIAS(PERIPHERAL, BAUDDIV, 4)) = 0;
    note("register", REGISTER(BAUDDIV));
    note("bit", REGISTER(ALIAS(PERIPHERAL, BAUDDIV, 0)));
}

/* QEMU's board has registers that read as zero here. */
__attribute__((unused)) static void nothing(void)
{
    say("nothing there\n");
    MISDEED("ldr r0, [%0]", "r"(ALIAS(PERIPHERAL, 0x400F0000u, 3)));
    MISDEED("str r0, [%0]", "r"(ALIAS(PERIPHERAL, 0x400F0000u, 3)));
}

int main(void)
{
    begin();
    handle(HARD_FAULT, fault);
    handle(BUS_FAULT, fault);
    SHCSR = 7u << 16;
    memory();
    peripherals();
#ifdef NOTHING
    nothing();
#endif
    say("end\n");
    end();
}
