/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's runtime power management of devices, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_PM_DEVICE_RUNTIME_H
#define FERRULE_FAKE_ZEPHYR_PM_DEVICE_RUNTIME_H

#include <zephyr/device.h>

int pm_device_runtime_get(const struct device *dev);
int pm_device_runtime_put(const struct device *dev);

#endif /* FERRULE_FAKE_ZEPHYR_PM_DEVICE_RUNTIME_H */
