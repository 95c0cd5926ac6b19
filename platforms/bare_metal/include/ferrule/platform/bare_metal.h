/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Devices without an operating system: a base address, and two user functions that switch
 * power.
 *
 * Only one task runs at a time, so no call can wait: a locked device results in FERRULE_ERR_BUSY.
 * With cooperative tasks, ferrule_port_thread() of the user's FERRULE_PORT_H distinguishes them.
 */
#ifndef FERRULE_PLATFORM_BARE_METAL_H
#define FERRULE_PLATFORM_BARE_METAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/device.h"
#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The device's clock gate or power switch; a function may be NULL if it is not needed. All return
 * FERRULE_OK or an error of ferrule/status.h. */
struct ferrule_bare_metal_power {
    int32_t (*on)(void *context); /* also ends a cut; if it fails it leaves the device off */
    int32_t (*off)(void *context);
    /* stop a device that does not obey its driver, by its power or its reset line, so that it makes
     * no access to memory any more, also after `on`; FERRULE_OK only if that was read back. A gate
     * of the device's clock is not sufficient: it would go on when the clock comes back. It takes
     * the place of `off`, which is not called then, until the next `on`. NULL if there is no such
     * means: `off` is never taken for it */
    int32_t (*cut)(void *context);
    void *context; /* argument of all */
};

/** A handle; its fields are private to the adapter. */
struct ferrule_device {
    struct ferrule_device_core core;
    void *base;
    const struct ferrule_bare_metal_power *power;
    uint32_t masked; /* interrupt state restored by unguard */
    bool locked;
    volatile bool notified; /* since the last wait */
};

/**
 * @brief Bind the handle to a device.
 * @param base     address of its registers, or any pointer that identifies it; may be NULL
 * @param power    NULL if the device is always powered; not copied, must outlive the handle
 * @param driver   not copied, must outlive the handle
 * @param context  passed to the driver; may be NULL if the driver allows it
 * @retval FERRULE_ERR_ARGUMENT     `driver` is null
 * @retval FERRULE_ERR_STATE        already bound
 * @retval FERRULE_ERR_UNSTOPPABLE  the device accesses memory by itself, `driver` has no `abort`
 *                                  with `is_stopped`, and `power` has no `cut`
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, void *base,
                            const struct ferrule_bare_metal_power *power,
                            const struct ferrule_driver *driver, void *context);

/** @brief Return the bound `base`; NULL before binding. */
static inline void *ferrule_bare_metal_base(const ferrule_device_t *dev)
{
    return dev->base;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_BARE_METAL_H */
