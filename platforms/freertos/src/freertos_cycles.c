/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ferrule/port.h for a program whose link runs in a task (FERRULE_PORT_THREAD). */
#include "ferrule/port.h"

#include "freertos_ports.h"

#include "ferrule/tick.h"

uint32_t ferrule_port_cycles(void)
{
    struct ferrule_core_tick tick;
    uint32_t ticks;

    ENTER_CRITICAL();
    ticks = (uint32_t)xTaskGetTickCount();
    tick = ferrule_core_read_tick();
    EXIT_CRITICAL();
    return ticks * tick.period + tick.passed;
}
