/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Time and waiting for adapters without a kernel. If the port has a clock
 * (FERRULE_PORT_HAS_CLOCK in ferrule/port.h), the core sleeps until an interrupt comes or the time
 * has passed. Otherwise a wait returns at once, so that its caller polls, and the clock counts its
 * own readings: a time-out of n microseconds is then n looks at the device, which take longer or
 * shorter.
 */
#ifndef FERRULE_SLEEP_H
#define FERRULE_SLEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/port.h"
#include "ferrule/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief Return the time in microseconds, or without a clock the number of calls; it wraps at
 * 2^32. Any context. */
static inline uint32_t ferrule_sleep_now_us(void)
{
#ifdef FERRULE_PORT_HAS_CLOCK
    return ferrule_port_now_us();
#else
    static uint32_t looks;

    return looks++;
#endif
}

/**
 * @brief Sleep until `*notified` is true, and clear it. The thread, with interrupts enabled.
 * @param notified    set by an interrupt handler
 * @retval FERRULE_OK           it was true, or the port has no clock
 * @retval FERRULE_ERR_TIMEOUT  the time has passed
 */
static inline int32_t ferrule_sleep_until(volatile bool *notified, uint32_t timeout_us)
{
#ifdef FERRULE_PORT_HAS_CLOCK
    const uint32_t begin = ferrule_port_now_us();

    for (;;) {
        /* masked from the look to the sleep: a notification between the two would be overlooked */
        const uint32_t masked = ferrule_port_critical_enter();
        const uint32_t passed = ferrule_port_now_us() - begin;

        if (*notified || passed >= timeout_us) {
            const int32_t status = *notified ? FERRULE_OK : FERRULE_ERR_TIMEOUT;

            *notified = false;
            ferrule_port_critical_exit(masked);
            return status;
        }
        ferrule_port_alarm(timeout_us - passed);
        ferrule_port_sleep(masked);
    }
#else
    (void)timeout_us;
    *notified = false;
    return FERRULE_OK;
#endif
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_SLEEP_H */
