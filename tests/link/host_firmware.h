/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_FIRMWARE_H
#define HOST_FIRMWARE_H

#include <stdbool.h>
#include <stdint.h>

#define HOST_IMAGE_BYTES 30900u
#define HOST_OPERATORS   600u
#define HOST_UART_BASE   0x40004000u
#define HOST_WIRE_BYTES  65536u

/* The simulated machine and the state that tests observe. */
struct host {
    uint32_t cycles, dwt_step;    /* DWT: cycles per reading */
    uint32_t ticks, systick_step; /* SysTick: ticks per reading */
    bool systick_wrapped;
    uint32_t operator_cycles[HOST_OPERATORS], operator_ticks[HOST_OPERATORS];
    uint32_t failing;     /* the operator that fails */
    uint32_t stack_words; /* stack depth of a run, in words */
    uint32_t runs;
    const uint8_t *rx;
    uint32_t rx_at, rx_end, tx_end, tx_wait, tx_busy, state_reads, uart_control, uart_divider;
    uint8_t tx[HOST_WIRE_BYTES];
};
extern struct host host;

void host_reset(uint32_t dwt_step, uint32_t systick_step);
void host_hide_calls(void);
void host_hide_identity(void);
void host_receive(const uint8_t *data, uint32_t bytes);
int32_t host_uart_init(uint32_t clock_hz, uint32_t baud);
uint32_t ferrule_crc32(const uint8_t *data, uint32_t bytes);

#endif
