/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses the device of test_device_contracts.py as the host commands: a letter, an argument of
 * four bytes, and for writes a value of four bytes; each command is answered with a word. */
#include "trace.h"

#define DEVICE 0x4F000000u
#define CLEAR  0x08u

static volatile uint32_t interrupts;
static uint8_t buffer[64];

static void interrupted(void)
{
    ++interrupts;
    REGISTER(DEVICE + CLEAR) = 1;
    (void)REGISTER(DEVICE + CLEAR); /* the line has fallen by the time of this read */
}

static uint32_t get_word(void)
{
    uint32_t word = 0;
    for (uint32_t i = 0; i < 32; i += 8) {
        word |= (uint32_t)get() << i;
    }
    return word;
}

static uint32_t spin(uint32_t turns)
{
    for (volatile uint32_t i = 0; i < turns; ++i) {
    }
    return turns;
}

int main(void)
{
    begin();
    handle(LINE0 + LINE_A, interrupted);
    ISER = 1u << LINE_A;
    start_uart();
    for (;;) {
        const uint8_t command = get();
        const uint32_t argument = get_word();
        uint32_t answer = 0;
        if (command == 'r') {
            answer = REGISTER(DEVICE + argument);
        } else if (command == 'w') {
            REGISTER(DEVICE + argument) = get_word();
        } else if (command == 'p') {
            answer = spin(argument);
        } else if (command == 'm') {
            answer = (uint32_t)(uintptr_t)buffer;
        } else {
            answer = interrupts;
        }
        put_word(answer);
    }
}
