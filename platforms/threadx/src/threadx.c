/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/threadx.h"

#include <stddef.h>
#include <string.h>

#include "ferrule/tick.h"
#include "tx_initialize.h"
#include "tx_mutex.h"
#include "tx_semaphore.h"
#include "tx_thread.h" /* TX_THREAD_GET_SYSTEM_STATE */

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");
_Static_assert(FERRULE_THREADX_OPEN_TIMEOUT_MS <= FERRULE_WAIT_MOST / 1000u,
               "FERRULE_THREADX_OPEN_TIMEOUT_MS is too long");

static int32_t status_of(UINT error, uint32_t timeout_us)
{
    switch (error) {
    case TX_SUCCESS:
        return FERRULE_OK;
    case TX_NOT_AVAILABLE: /* of a mutex */
    case TX_NO_INSTANCE:   /* of a semaphore */
        return timeout_us == 0u ? FERRULE_ERR_BUSY : FERRULE_ERR_TIMEOUT;
    case TX_CALLER_ERROR:
        return FERRULE_ERR_INTERRUPT;
    case TX_MUTEX_ERROR:
    case TX_SEMAPHORE_ERROR:
    case TX_DELETED:
        return FERRULE_ERR_HANDLE;
    case TX_NOT_OWNED:
        return FERRULE_ERR_OWNER;
    default:
        return FERRULE_ERR_FAILED;
    }
}

int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context)
{
    return ferrule_device_bind_driver(dev, driver, context);
}

bool ferrule_platform_in_interrupt(void)
{
    const ULONG state = TX_THREAD_GET_SYSTEM_STATE();

    return state != 0u && state < TX_INITIALIZE_IN_PROGRESS;
}

const void *ferrule_platform_thread(void)
{
    static const char before_the_kernel = 0;
    const void *thread = tx_thread_identify();

    return thread != NULL ? thread : &before_the_kernel;
}

int32_t ferrule_platform_priority(void)
{
    const TX_THREAD *thread = tx_thread_identify();

    return thread != NULL ? -(int32_t)thread->tx_thread_priority : 0; /* lower is more urgent */
}

void ferrule_platform_yield(void)
{
    tx_thread_relinquish();
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    UINT error;

    /* create refuses a control block that looks alive */
    (void)memset(&dev->mutex, 0, sizeof dev->mutex);
    (void)memset(&dev->notified, 0, sizeof dev->notified);
    error = tx_mutex_create(&dev->mutex, (CHAR *)"ferrule", TX_INHERIT);
    if (error != TX_SUCCESS) {
        return status_of(error, 1u);
    }
    error = tx_semaphore_create(&dev->notified, (CHAR *)"ferrule", 0u);
    if (error != TX_SUCCESS) {
        (void)tx_mutex_delete(&dev->mutex);
    }
    return status_of(error, 1u);
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    int32_t first;
    int32_t second;

    ferrule_platform_unguard(dev);
    /* without the error checking, which refuses both before the kernel runs */
    first = status_of(_tx_mutex_delete(&dev->mutex), 1u);
    second = status_of(_tx_semaphore_delete(&dev->notified), 1u);
    return first != FERRULE_OK ? first : second;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);

    dev->posture = posture;
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    (void)tx_interrupt_control(dev->posture);
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return FERRULE_THREADX_OPEN_TIMEOUT_MS * 1000u;
}

/* Since the last tick. */
static uint32_t phase_us(void)
{
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);
    const uint32_t phase = ferrule_tick_core_us(TX_TIMER_TICKS_PER_SECOND);

    (void)tx_interrupt_control(posture);
    return phase;
}

/* Before the kernel runs, nothing can wait. */
static ULONG ticks_of(uint32_t microseconds)
{
    if (microseconds == 0u || TX_THREAD_GET_SYSTEM_STATE() != 0u) {
        return TX_NO_WAIT;
    }
    return ferrule_tick_count(microseconds, phase_us(), TX_TIMER_TICKS_PER_SECOND);
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    return status_of(tx_mutex_get(&dev->mutex, ticks_of(timeout_us)), timeout_us);
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    return status_of(tx_mutex_put(&dev->mutex), 1u);
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    (void)dev; /* ThreadX has no device drivers; the driver's check does this */
    return FERRULE_OK;
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    (void)dev; /* ThreadX has no device power; the driver's activate switches it */
    (void)on;
    return FERRULE_OK;
}

int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    (void)dev;
    return FERRULE_ERR_UNSUPPORTED;
}

uint32_t ferrule_platform_now_us(void)
{
    static struct ferrule_tick_clock clock;
    static ULONG last;
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);
    const ULONG now = tx_time_get();
    const uint32_t phase = ferrule_tick_core_us(TX_TIMER_TICKS_PER_SECOND);
    const uint32_t tick =
        ferrule_tick_add(&clock, (uint32_t)(now - last), TX_TIMER_TICKS_PER_SECOND);

    last = now;
    (void)tx_interrupt_control(posture);
    return phase == FERRULE_TICK_NO_PHASE ? tick : tick + phase;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    if (ferrule_tick_polls(timeout_us, phase_us(), TX_TIMER_TICKS_PER_SECOND)) {
        if (tx_semaphore_get(&dev->notified, TX_NO_WAIT) != TX_SUCCESS) {
            ferrule_platform_yield();
        }
        return FERRULE_OK; /* the caller looks again */
    }
    return status_of(tx_semaphore_get(&dev->notified, ticks_of(timeout_us)), timeout_us);
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    (void)tx_semaphore_ceiling_put(&dev->notified, 1u); /* fails if it is given already */
}
