/* SPDX-License-Identifier: Apache-2.0 */
/* ferrule/counter.h on a kernel's system timer. Replaces src_c/runtime/counter.c, which would take
 * SysTick from the kernel. */
#include "ferrule/counter.h"

#include <stdint.h>

#include "cmsis_os2.h"

void ferrule_counter_start(struct ferrule_counter *counter)
{
    /* The unit is that of the kernel's timer: SysTick at the core's clock, with RTX5 and FreeRTOS.
     */
    counter->source =
        osKernelGetSysTimerFreq() != 0u ? FERRULE_COUNTER_SYSTICK : FERRULE_COUNTER_NONE;
    ferrule_counter_reset(counter);
}

void ferrule_counter_reset(struct ferrule_counter *counter)
{
    counter->last = osKernelGetSysTimerCount();
    counter->elapsed = 0;
}

uint64_t ferrule_counter_read(struct ferrule_counter *counter)
{
    if (counter->source != FERRULE_COUNTER_NONE) {
        const uint32_t now = osKernelGetSysTimerCount();
        counter->elapsed += now - counter->last;
        counter->last = now;
    }
    return counter->elapsed;
}
