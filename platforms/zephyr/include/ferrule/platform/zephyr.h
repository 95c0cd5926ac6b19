/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Devices on Zephyr 3.5 and later: a handle, and the functions that bind it to a Zephyr
 * device.
 *
 * A handle is for threads in supervisor mode: user threads cannot be granted access to its lock.
 */
#ifndef FERRULE_PLATFORM_ZEPHYR_H
#define FERRULE_PLATFORM_ZEPHYR_H

#include <stdbool.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>

#include "ferrule/device.h"
#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A handle, owned by the user and usually static; all fields are private to the adapter. */
struct ferrule_device {
	struct ferrule_device_core core;
	const struct device *zephyr_device; /* NULL for a soft device */
	struct k_mutex lock;
	struct k_sem notified; /* since the last wait */
	struct k_spinlock guard;
	k_spinlock_key_t guard_key; /* of the thread that holds the guard */
};

/**
 * @brief Bind a handle to a Zephyr device, such as DEVICE_DT_GET(DT_ALIAS(npu0)).
 *
 * activate and deactivate call pm_device_runtime_get() and pm_device_runtime_put() for it.
 * @retval FERRULE_ERR_ARGUMENT     a pointer other than `context` is null
 * @retval FERRULE_ERR_STATE        not initialised, or already bound
 * @retval FERRULE_ERR_UNAVAILABLE  Zephyr's driver did not initialise it (device_is_ready())
 * @retval FERRULE_ERR_UNSTOPPABLE  it accesses memory by itself, is in no power domain, and
 * `driver` has no `abort` with `is_stopped`
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, const struct device *zephyr_device,
			    const struct ferrule_driver *driver, void *context);

/** @brief Bind a handle to a device unknown to Zephyr, such as a soft device that runs on the core:
 * it is always ready and its power is not switched. The errors are those of ferrule_device_bind().
 */
int32_t ferrule_device_bind_soft(ferrule_device_t *dev, const struct ferrule_driver *driver,
				 void *context);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_ZEPHYR_H */
