/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces src_c/runtime/counter.c, which would take SysTick from the kernel. */
#include "ferrule/counter.h"

#include <stdint.h>
#include <zephyr/kernel.h>

/* Only if the kernel's cycles come from SysTick at the core's clock: the link has no name for the
 * units of other timers.
 */
#if defined(CONFIG_CORTEX_M_SYSTICK)
#define SOURCE FERRULE_COUNTER_SYSTICK
#else
#define SOURCE FERRULE_COUNTER_NONE
#endif

void ferrule_counter_start(struct ferrule_counter *counter)
{
	counter->source = SOURCE;
	ferrule_counter_reset(counter);
}

void ferrule_counter_reset(struct ferrule_counter *counter)
{
	counter->elapsed = 0;
	counter->last = k_cycle_get_32();
}

uint64_t ferrule_counter_read(struct ferrule_counter *counter)
{
	if (counter->source != FERRULE_COUNTER_NONE) {
		const uint32_t now = k_cycle_get_32();

		counter->elapsed += now - counter->last;
		counter->last = now;
	}
	return counter->elapsed;
}
