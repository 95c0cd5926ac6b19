/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/freertos.h"

#include <stddef.h>

#include "task.h"

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");

int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context)
{
    return ferrule_device_bind_driver(dev, driver, context);
}

bool ferrule_platform_in_interrupt(void)
{
    return xPortIsInsideInterrupt() != pdFALSE;
}

const void *ferrule_platform_thread(void)
{
    static const char before_the_scheduler = 0;
    const void *task = xTaskGetCurrentTaskHandle();

    return task != NULL ? task : &before_the_scheduler;
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    dev->lock = xSemaphoreCreateMutexStatic(&dev->mutex);
    return dev->lock != NULL ? FERRULE_OK : FERRULE_ERR_MEMORY;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    SemaphoreHandle_t lock = dev->lock;

    dev->lock = NULL;
    ferrule_platform_unguard(dev);
    vSemaphoreDelete(lock); /* no task has it or waits for it */
    return FERRULE_OK;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    (void)dev; /* one guard for all devices: it is held only briefly */
    taskENTER_CRITICAL();
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    (void)dev;
    taskEXIT_CRITICAL();
}

int32_t ferrule_platform_lock(ferrule_device_t *dev)
{
    if (xSemaphoreTake(dev->lock, pdMS_TO_TICKS(FERRULE_FREERTOS_OPEN_TIMEOUT_MS)) == pdTRUE) {
        return FERRULE_OK;
    }
    return FERRULE_FREERTOS_OPEN_TIMEOUT_MS == 0 ? FERRULE_ERR_BUSY : FERRULE_ERR_TIMEOUT;
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
