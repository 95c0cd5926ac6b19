/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Whether a device that was given up is stopped, cut or lost; private to device.c.
 * docs/platforms.md describes the contract. All functions that get a handle are called with its
 * lock, without its guard.
 */
#ifndef FERRULE_HEALTH_H
#define FERRULE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device can be stopped after an error. */
static inline bool ferrule_health_is_stoppable(const struct ferrule_device_core *core,
                                               const struct ferrule_driver *driver)
{
    if (driver->is_passive) {
        return driver->abort != NULL || driver->finish == NULL; /* without it, no commands */
    }
    return core->can_cut || (driver->abort != NULL && driver->is_stopped != NULL);
}

/* Whether the device, which has power, is not seen working. */
static inline bool ferrule_health_rests(const struct ferrule_device_core *core)
{
    return core->driver->is_stopped == NULL || core->driver->is_stopped(core->context);
}

/* A thread that could not run for long looks at the device once more before it gives up. */
static inline bool ferrule_health_comes_to_rest(const struct ferrule_device_core *core)
{
    const uint32_t begin = ferrule_platform_now_us();
    uint32_t passed;

    do {
        passed = ferrule_platform_now_us() - begin;
        if (ferrule_health_rests(core)) {
            return true;
        }
    } while (passed < FERRULE_DEVICE_STOP_US);
    return false;
}

/* What the driver says counts only if the device confirms it, or makes no access to memory. */
static inline bool ferrule_health_is_aborted(const struct ferrule_device_core *core)
{
    const struct ferrule_driver *driver = core->driver;

    if (driver->abort == NULL) {
        return driver->is_passive; /* it has no commands */
    }
    if (driver->abort(core->context) != FERRULE_OK) {
        return false;
    }
    return (driver->is_passive || driver->is_stopped != NULL) && ferrule_health_comes_to_rest(core);
}

/* Stops the device, which has power, by its driver or by force. */
static inline int32_t ferrule_health_stop(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);

    if (core->health == (uint32_t)FERRULE_DEVICE_CUT) {
        return FERRULE_OK;
    }
    if (ferrule_health_is_aborted(core)) {
        core->health = (uint32_t)FERRULE_DEVICE_FINE; /* not before: other threads look */
        return FERRULE_OK;
    }
    if (ferrule_platform_cut(dev) == FERRULE_OK) {
        core->health = (uint32_t)FERRULE_DEVICE_CUT;
        return FERRULE_OK;
    }
    core->health = (uint32_t)FERRULE_DEVICE_LOST;
    return FERRULE_ERR_DEVICE;
}

/* A lost device stays lost: switching off confirms nothing. One that was cut is off already. */
static inline int32_t ferrule_health_switch_off(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);

    if (core->health == (uint32_t)FERRULE_DEVICE_CUT) {
        core->health = (uint32_t)FERRULE_DEVICE_FINE;
        return FERRULE_OK;
    }
    return ferrule_platform_power(dev, false);
}

/* Stops a device that is not active, if it is lost. It needs power for that. */
static inline int32_t ferrule_health_find(ferrule_device_t *dev)
{
    int32_t status;
    int32_t off;

    if (ferrule_device_core_of(dev)->health != (uint32_t)FERRULE_DEVICE_LOST) {
        return FERRULE_OK;
    }
    status = ferrule_platform_power(dev, true);
    if (status != FERRULE_OK) {
        return status;
    }
    status = ferrule_health_stop(dev);
    off = ferrule_health_switch_off(dev);
    return status != FERRULE_OK ? status : off;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_HEALTH_H */
