/* SPDX-License-Identifier: Apache-2.0 */
/* Echoes each byte with some bits flipped, by interrupts only, and sleeps in between. */
#include "trace.h"

static volatile uint8_t queue[256];
static volatile uint8_t head;
static volatile uint8_t tail;

static void transmit(void)
{
    REGISTER(UART_BASE + 0xCu) = 1; /* clears the interrupt */
    if (tail != head && (REGISTER(UART_BASE + 4u) & 1u) == 0) {
        REGISTER(UART_BASE) = queue[tail++];
    }
}

static void receive(void)
{
    const uint8_t empty = head == tail;
    REGISTER(UART_BASE + 0xCu) = 2;
    queue[head++] = (uint8_t)(REGISTER(UART_BASE) ^ 0x55u);
    if (empty) {
        transmit();
    }
}

int main(void)
{
    begin();
    handle(LINE0 + RX_LINE, receive);
    handle(LINE0 + TX_LINE, transmit);
    REGISTER(UART_BASE + 0x10u) = 16;
    REGISTER(UART_BASE + 0x08u) = 15;
    (&ISER)[RX_LINE / 32] = 1u << RX_LINE % 32;
    (&ISER)[TX_LINE / 32] = 1u << TX_LINE % 32;
    for (;;) {
        __asm volatile("wfi");
    }
}
