/* SPDX-License-Identifier: Apache-2.0 */
#include "freertos_ports.h"

#include <stddef.h>

#include "ferrule/tick.h"

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");
_Static_assert(FERRULE_FREERTOS_OPEN_TIMEOUT_MS <= FERRULE_WAIT_MOST / 1000u,
               "FERRULE_FREERTOS_OPEN_TIMEOUT_MS is too long");

int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context)
{
    return ferrule_device_bind_driver(dev, driver, context);
}

bool ferrule_platform_in_interrupt(void)
{
    return IN_INTERRUPT();
}

const void *ferrule_platform_thread(void)
{
    static const char before_the_scheduler = 0;
    const void *task = xTaskGetCurrentTaskHandle();

    return task != NULL ? task : &before_the_scheduler;
}

/* Without the function, all tasks count as equal: they get the lock in order of arrival. */
int32_t ferrule_platform_priority(void)
{
#if INCLUDE_uxTaskPriorityGet == 1
    return xTaskGetCurrentTaskHandle() != NULL ? (int32_t)uxTaskPriorityGet(NULL) : 0;
#else
    return 0;
#endif
}

void ferrule_platform_yield(void)
{
    taskYIELD();
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    dev->lock = xSemaphoreCreateMutexStatic(&dev->mutex);
    dev->notified = xSemaphoreCreateBinaryStatic(&dev->semaphore);
    return dev->lock != NULL && dev->notified != NULL ? FERRULE_OK : FERRULE_ERR_MEMORY;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    SemaphoreHandle_t lock = dev->lock;
    SemaphoreHandle_t notified = dev->notified;

    dev->lock = NULL;
    dev->notified = NULL;
    ferrule_platform_unguard(dev);
    vSemaphoreDelete(lock); /* no task has it or waits for it */
    vSemaphoreDelete(notified);
    return FERRULE_OK;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    (void)dev; /* one guard for all devices: it is held only briefly */
    ENTER_CRITICAL();
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    (void)dev;
    EXIT_CRITICAL();
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return FERRULE_FREERTOS_OPEN_TIMEOUT_MS * 1000u;
}

/* Since the last tick. */
static uint32_t phase_us(void)
{
    uint32_t phase;

    ENTER_CRITICAL();
    phase = ferrule_tick_core_us(configTICK_RATE_HZ);
    EXIT_CRITICAL();
    return phase;
}

static TickType_t ticks_of(uint32_t microseconds)
{
    const uint32_t ticks = ferrule_tick_count(microseconds, phase_us(), configTICK_RATE_HZ);

    return ticks < portMAX_DELAY ? (TickType_t)ticks : portMAX_DELAY - 1u;
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    const TickType_t ticks = timeout_us == 0u ? 0u : ticks_of(timeout_us);

    if (xSemaphoreTake(dev->lock, ticks) == pdTRUE) {
        return FERRULE_OK;
    }
    return timeout_us == 0u ? FERRULE_ERR_BUSY : FERRULE_ERR_TIMEOUT;
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    return xSemaphoreGive(dev->lock) == pdTRUE ? FERRULE_OK : FERRULE_ERR_FAILED;
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    (void)dev; /* FreeRTOS has no device drivers; the driver's check does this */
    return FERRULE_OK;
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    (void)dev; /* nor device power; the driver's activate switches it */
    (void)on;
    return FERRULE_OK;
}

int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    (void)dev; /* FreeRTOS has no device power */
    return FERRULE_ERR_UNSUPPORTED;
}

/* In a critical section. */
static uint32_t us_at(TickType_t now)
{
    static struct ferrule_tick_clock clock;
    static TickType_t last;
    const uint32_t phase = ferrule_tick_core_us(configTICK_RATE_HZ);
    const TickType_t passed = (TickType_t)(now - last);

    last = now;
    return ferrule_tick_add(&clock, passed, configTICK_RATE_HZ) +
           (phase == FERRULE_TICK_NO_PHASE ? 0u : phase);
}

uint32_t ferrule_platform_now_us(void)
{
    uint32_t now;

    if (IN_INTERRUPT()) {
        UBaseType_t masked;

        ENTER_CRITICAL_FROM_ISR(masked);
        now = us_at(xTaskGetTickCountFromISR());
        EXIT_CRITICAL_FROM_ISR(masked);
    } else {
        ENTER_CRITICAL();
        now = us_at(xTaskGetTickCount());
        EXIT_CRITICAL();
    }
    return now;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    if (ferrule_tick_polls(timeout_us, phase_us(), configTICK_RATE_HZ)) {
        if (xSemaphoreTake(dev->notified, 0u) != pdTRUE) {
            ferrule_platform_yield();
        }
        return FERRULE_OK; /* the caller looks again */
    }
    return xSemaphoreTake(dev->notified, ticks_of(timeout_us)) == pdTRUE ? FERRULE_OK
                                                                         : FERRULE_ERR_TIMEOUT;
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    if (IN_INTERRUPT()) {
        BaseType_t woken = pdFALSE;

        (void)xSemaphoreGiveFromISR(dev->notified, &woken); /* fails if it is given already */
        portYIELD_FROM_ISR(woken);
    } else {
        (void)xSemaphoreGive(dev->notified);
    }
}
