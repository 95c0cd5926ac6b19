/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Devices on Zephyr 3.5 and later: a handle, and how it is bound to one of Zephyr's devices.
 *
 * A handle is for threads in supervisor mode: its lock is no kernel object that a user thread could
 * be granted.
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_H
#define FERRULE_PLATFORM_ZEPHYR_H

#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include "ferrule/device.h"
#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The user's, static as a rule; all fields are the adapter's. */
struct ferrule_device {
    struct ferrule_device_core core;
    const struct device *zephyr_device; /* NULL for a soft device */
    struct k_mutex lock;
    struct k_spinlock guard;
    k_spinlock_key_t guard_key; /* of the thread that has the guard */
};

/**
 * @brief Bind a handle to one of Zephyr's devices, such as DEVICE_DT_GET(DT_ALIAS(npu0)).
 *
 * activate and deactivate call pm_device_runtime_get() and _put() for it.
 * @retval FERRULE_ERR_ARGUMENT     a pointer is null; `context` may be
 * @retval FERRULE_ERR_STATE        not initialised, or bound already
 * @retval FERRULE_ERR_UNAVAILABLE  Zephyr's driver did not initialise it (device_is_ready())
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct device *zephyr_device,
                            const struct ferrule_driver *driver, void *context);

/** @brief Bind a handle to a device that Zephyr knows nothing of, such as one that the core itself
 * stands in for: it is always ready and has no power to switch. The errors are those of
 * ferrule_device_bind(). */
int32_t ferrule_device_bind_soft(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                 void *context);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_H */
