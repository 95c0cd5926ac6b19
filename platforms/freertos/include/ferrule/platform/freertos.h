/* SPDX-License-Identifier: Apache-2.0 */
/** @file Devices on FreeRTOS: a mutex with priority inheritance per device; nothing is allocated.
 * If tasks of different priorities share a device, set INCLUDE_uxTaskPriorityGet to 1 in
 * FreeRTOSConfig.h. */
#ifndef FERRULE_PLATFORM_FREERTOS_H
#define FERRULE_PLATFORM_FREERTOS_H

#ifdef ESP_PLATFORM /* ESP-IDF */
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#else
#include "FreeRTOS.h"
#include "semphr.h"
#endif

#include "ferrule/device.h"
#include "ferrule/platform.h"

/** Longest time in milliseconds that open waits for another task, up to 2147483; 0: open does not
 * wait. */
#ifndef FERRULE_FREERTOS_OPEN_TIMEOUT_MS
#define FERRULE_FREERTOS_OPEN_TIMEOUT_MS 1000
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A handle; its fields belong to the adapter. */
struct ferrule_device {
    struct ferrule_device_core core;
    StaticSemaphore_t mutex;
    SemaphoreHandle_t lock; /* handle of `mutex` */
    StaticSemaphore_t semaphore;
    SemaphoreHandle_t notified; /* handle of `semaphore`: given since the last wait */
};

/**
 * @brief Bind the device. FreeRTOS has no type for devices, so the driver's context identifies it.
 * @retval FERRULE_ERR_ARGUMENT  `driver` is null
 * @retval FERRULE_ERR_STATE     the device is already bound
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_FREERTOS_H */
