/* SPDX-License-Identifier: Apache-2.0 */
/** @file Devices on Eclipse ThreadX: a mutex with priority inheritance per device. */
#ifndef FERRULE_PLATFORM_THREADX_H
#define FERRULE_PLATFORM_THREADX_H

#include "tx_api.h"

#include "ferrule/device.h"
#include "ferrule/platform.h"

/** Longest time in milliseconds that open waits for another thread; 0: open does not wait. */
#ifndef FERRULE_THREADX_OPEN_TIMEOUT_MS
#define FERRULE_THREADX_OPEN_TIMEOUT_MS 1000
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** A handle; its fields belong to the adapter. */
struct ferrule_device {
    struct ferrule_device_core core;
    TX_MUTEX mutex;
    TX_SEMAPHORE notified; /* since the last wait; at most 1 */
    UINT posture;          /* of interrupts before the guard */
};

/**
 * @brief Bind the device. ThreadX has no type for devices, so the driver's context identifies it.
 * @retval FERRULE_ERR_ARGUMENT  `driver` is null
 * @retval FERRULE_ERR_STATE     the device is already bound
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct ferrule_driver *driver,
                            void *context);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_THREADX_H */
