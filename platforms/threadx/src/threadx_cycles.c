/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ferrule/port.h for a program whose link runs in a thread (FERRULE_PORT_THREAD). */
#include "ferrule/port.h"

#include "ferrule/tick.h"
#include "tx_api.h"

uint32_t ferrule_port_cycles(void)
{
    struct ferrule_core_tick tick;
    uint32_t ticks;
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);

    ticks = (uint32_t)tx_time_get();
    tick = ferrule_core_read_tick();
    (void)tx_interrupt_control(posture);
    return ticks * tick.period + tick.passed;
}
