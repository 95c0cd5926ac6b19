/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Devices without an operating system: a base address, and power by two functions of the
 * user's.
 *
 * One thing runs at a time, so nothing can wait: what is locked is FERRULE_ERR_BUSY. With tasks
 * that take turns, ferrule_port_thread() of the user's FERRULE_PORT_H tells them apart.
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

/** The device's clock gate or power switch; a member that is NULL needs nothing. Both return
 * FERRULE_OK or an error of ferrule/status.h. */
struct ferrule_bare_metal_power {
    int32_t (*on)(void *context); /* if it fails it leaves the device off */
    int32_t (*off)(void *context);
    void *context; /* argument of both */
};

/** A handle; its fields are the adapter's. */
struct ferrule_device {
    struct ferrule_device_core core;
    void *base;
    const struct ferrule_bare_metal_power *power;
    uint32_t masked; /* what the critical section restores */
    bool locked;
};

/**
 * @brief Say which device it is.
 * @param base     of its registers, or whatever leads to it; NULL if nothing does
 * @param power    NULL if it always has power; is kept, not copied
 * @param driver   is kept, not copied
 * @param context  of the driver; may be NULL if the driver allows it
 * @retval FERRULE_ERR_ARGUMENT  `driver` is null
 * @retval FERRULE_ERR_STATE     bound already
 */
int32_t ferrule_device_bind(ferrule_device_t *dev, void *base,
                            const struct ferrule_bare_metal_power *power,
                            const struct ferrule_driver *driver, void *context);

/** @brief The `base` that was bound; NULL before. */
static inline void *ferrule_bare_metal_base(const ferrule_device_t *dev)
{
    return dev->base;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_BARE_METAL_H */
