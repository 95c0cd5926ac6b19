/* SPDX-License-Identifier: Apache-2.0 */
/* Arm MPS2 with application note AN385: UART 0 for the report, timer 0 as the device (Cortex-M
 * System Design Kit, chapters 4.3 and 4.5), and the counter of the FPGA's own registers. */
#include "board.h"

#include "ferrule/conformance.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CYCLES_PER_US     25u

#define TIMER_CTRL   REGISTER(0x40000000u)
#define TIMER_VALUE  REGISTER(0x40000004u)
#define TIMER_RELOAD REGISTER(0x40000008u)
#define TIMER_CLEAR  REGISTER(0x4000000Cu)
#define TIMER_RUNS   0x9u /* and interrupts */

#define UART_DATA    REGISTER(0x40004000u)
#define UART_STATE   REGISTER(0x40004004u)
#define UART_CTRL    REGISTER(0x40004008u)
#define UART_DIVIDER REGISTER(0x40004010u)
#define UART_FULL    0x1u
#define UART_SENDS   0x1u

#define FPGA_COUNTER   REGISTER(0x40028018u)
#define FPGA_PRESCALER REGISTER(0x4002801Cu)

void board_begin(void)
{
    UART_DIVIDER = 16;
    UART_CTRL = UART_SENDS;
    FPGA_PRESCALER = CYCLES_PER_US - 1u; /* the counter counts microseconds */
}

void board_timer_handler(void)
{
    TIMER_CTRL = 0;
    TIMER_CLEAR = 1;
    conformance_interrupt();
}

void conformance_put(char character)
{
    while ((UART_STATE & UART_FULL) != 0) {
    }
    UART_DATA = (uint8_t)character;
}

uint32_t conformance_now_us(void)
{
    return FPGA_COUNTER;
}

void conformance_alarm(uint32_t after_us)
{
    const uint32_t most_us = UINT32_MAX / CYCLES_PER_US;
    const uint32_t cycles = (after_us < most_us ? after_us : most_us) * CYCLES_PER_US;

    TIMER_CTRL = 0;
    TIMER_VALUE = cycles;
    TIMER_RELOAD = cycles;
    TIMER_CTRL = TIMER_RUNS;
}
