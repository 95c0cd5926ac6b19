/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/threadx.h"

#include <stddef.h>
#include <string.h>

#include "tx_initialize.h"
#include "tx_mutex.h"
#include "tx_semaphore.h"
#include "tx_thread.h" /* TX_THREAD_GET_SYSTEM_STATE */

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");

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

/* Rounded up; one more, because the first tick may come at once. Before the kernel runs, nothing
 * can wait. */
static ULONG ticks_of(uint32_t microseconds)
{
    const uint64_t ticks =
        ((uint64_t)microseconds * TX_TIMER_TICKS_PER_SECOND + 999999u) / 1000000u + 1u;

    if (microseconds == 0u || TX_THREAD_GET_SYSTEM_STATE() != 0u) {
        return TX_NO_WAIT;
    }
    return ticks < TX_WAIT_FOREVER ? (ULONG)ticks : TX_WAIT_FOREVER - 1u;
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

/* Adds up the ticks since the last call, because a count of ticks that wraps is no time unless a
 * tick is a whole number of microseconds. */
uint32_t ferrule_platform_now_us(void)
{
    static ULONG last;
    static uint32_t us;
    static uint32_t rest; /* in fractions of a microsecond, of which a tick rate has one million */
    const UINT posture = tx_interrupt_control(TX_INT_DISABLE);
    const ULONG now = tx_time_get();
    const uint64_t more = (uint64_t)(ULONG)(now - last) * 1000000u + rest;
    uint32_t result;

    last = now;
    us += (uint32_t)(more / TX_TIMER_TICKS_PER_SECOND);
    rest = (uint32_t)(more % TX_TIMER_TICKS_PER_SECOND);
    result = us;
    (void)tx_interrupt_control(posture);
    return result;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    return status_of(tx_semaphore_get(&dev->notified, ticks_of(timeout_us)), timeout_us);
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    (void)tx_semaphore_ceiling_put(&dev->notified, 1u); /* fails if it is given already */
}
