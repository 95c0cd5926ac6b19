/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What a driver gives to the device API: the part of a device that is the same on every
 * platform.
 *
 * A driver is one const table per kind of device and one context per device, both the user's. It
 * touches hardware through ferrule/port.h or a ferrule/transport.h only, so that the same source
 * runs on every platform, on the host, and against a model of the device.
 */
#ifndef FERRULE_DRIVER_H
#define FERRULE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The functions of one kind of device; each member but `name` may be NULL, which stands for a
 * device that needs nothing of that.
 *
 * All get the context that was bound and run in a thread, never in an interrupt, and never two at
 * once for one device: the thread that calls them has its lock. They may wait, but not for longer
 * than another thread waits at open. They return FERRULE_OK or an error of ferrule/status.h, and do
 * not call the device API with the device that they belong to.
 */
struct ferrule_driver {
    const char *name; /* of the kind, such as "woofles" */
    /* after the platform gave power and clocks: reset, identify, configure; if it fails, the
     * platform takes them again without a call of deactivate */
    int32_t (*activate)(void *context);
    /* before the platform takes power and clocks; what the device held may be lost */
    int32_t (*deactivate)(void *context);
    /* at each open of the activated device: is it there and idle? cheap */
    int32_t (*check)(void *context);
    /* between the core's memory and `device_offset` bytes into the device's own; NULL for a device
     * that has none */
    int32_t (*copy_to)(void *context, uint32_t device_offset, const void *source, size_t bytes);
    int32_t (*copy_from)(void *context, void *destination, uint32_t device_offset, size_t bytes);
    uint32_t memory_bytes; /* of the device's own memory; copies outside of it are refused */
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVER_H */
