/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up of the ports whose kernel has none of its own for the board. Their builds define the
 * names of the kernel's three handlers. */
#include <stdint.h>

#include "board.h"
#include "ferrule/conformance.h"

#define REGISTER(address)  (*(volatile uint32_t *)(address))
#define NVIC_ENABLE        REGISTER(0xE000E100u)
#define NVIC_PRIORITY(irq) (*(volatile uint8_t *)(0xE000E400u + (irq)))
#define LOW_PRIORITY       0xC0u /* one from which the kernels may be called */

union vector {
    void (*handler)(void);
    void *stack;
};

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);
void reset(void);
void CONFORMANCE_SVC_HANDLER(void);
void CONFORMANCE_PENDSV_HANDLER(void);
void CONFORMANCE_SYSTICK_HANDLER(void);

static void fault(void)
{
    for (const char *at = "\nfault\n"; *at != '\0'; at++) {
        conformance_put(*at);
    }
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const union vector vectors[16 + 32] = {
    {.stack = stack_top},
    {.handler = reset},
    {.handler = fault}, /* NMI, and the four faults */
    {.handler = fault},
    {.handler = fault},
    {.handler = fault},
    {.handler = fault},
    [11] = {.handler = CONFORMANCE_SVC_HANDLER},
    [14] = {.handler = CONFORMANCE_PENDSV_HANDLER},
    [15] = {.handler = CONFORMANCE_SYSTICK_HANDLER},
    [16 + BOARD_TIMER_INTERRUPT] = {.handler = board_timer_handler},
};

void reset(void)
{
    const uint32_t *from = data_load;

    for (uint32_t *to = data_start; to != data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = bss_start; to != bss_end; to++) {
        *to = 0;
    }
    board_begin();
    NVIC_PRIORITY(BOARD_TIMER_INTERRUPT) = LOW_PRIORITY;
    NVIC_ENABLE = 1u << BOARD_TIMER_INTERRUPT;
    (void)main();
    fault(); /* main starts the kernel, which does not return */
}
