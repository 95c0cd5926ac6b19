/* SPDX-License-Identifier: Apache-2.0 */
/** @file Zephyr's power management of devices, for the host. */
#ifndef FERRULE_FAKE_ZEPHYR_PM_DEVICE_H
#define FERRULE_FAKE_ZEPHYR_PM_DEVICE_H

#include <stdbool.h>

#include <zephyr/device.h>

enum pm_device_action {
    PM_DEVICE_ACTION_SUSPEND,
    PM_DEVICE_ACTION_RESUME,
    PM_DEVICE_ACTION_TURN_OFF,
    PM_DEVICE_ACTION_TURN_ON
};

enum pm_device_state {
    PM_DEVICE_STATE_ACTIVE,
    PM_DEVICE_STATE_SUSPENDED,
    PM_DEVICE_STATE_SUSPENDING,
    PM_DEVICE_STATE_OFF
};

/** Return the state in `*state`: that of a device in a power domain of its own. */
int pm_device_state_get(const struct device *dev, enum pm_device_state *state);

/** Return true: see pm_device_state_get(). */
bool pm_device_on_power_domain(const struct device *dev);

typedef int (*pm_device_action_cb_t)(const struct device *dev, enum pm_device_action action);

/** Stores the callback for ferrule_fake_power_action(), and resumes the device. */
int pm_device_driver_init(const struct device *dev, pm_device_action_cb_t action_cb);

#define PM_DEVICE_DT_DEFINE(node, action_cb) _Static_assert(1, "nothing to define")
#define PM_DEVICE_DT_GET(node)               NULL

#endif /* FERRULE_FAKE_ZEPHYR_PM_DEVICE_H */
