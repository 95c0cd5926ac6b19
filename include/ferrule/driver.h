/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The interface between a driver and the device API: the part of a device that is the same on
 * every platform.
 *
 * A driver is one const table per kind of device and one context per device, both owned by the
 * user. It accesses hardware only through ferrule/port.h or a transport (ferrule/transport.h), so
 * the same source runs on every platform, on the host, and against a model of the device.
 */
#ifndef FERRULE_DRIVER_H
#define FERRULE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/stop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One of a device's own counts, such as of busy cycles, bytes or stalls. */
struct ferrule_statistic {
    const char *name; /* at most 255 bytes of UTF-8; the same at each call */
    uint32_t count;   /* since the program began; it only grows, and wraps at 2^32 */
};

/**
 * The functions of one kind of device; each pointer except `name` may be NULL if the device does
 * not need that function.
 *
 * All receive the bound context and run in a thread, never in an interrupt. Calls for one device
 * never overlap, because the calling thread holds its lock. The functions may wait, but not longer
 * than another thread waits at open. They return FERRULE_OK or an error of ferrule/status.h, and do
 * not call the device API with their own device. A function that waits for its device is an
 * operator and waits through ferrule_device_wait() or ferrule_device_finish() (ferrule/device.h).
 */
struct ferrule_driver {
    const char *name; /* of the kind of device, such as "woofles" */
    /* whether the device never accesses the core's memory by itself: all its data passes through
     * the driver's functions. false, also if a driver does not state it: the device may read and
     * write memory at any time while it works. It can then be bound only if it can be stopped:
     * the driver has `abort` and `is_stopped`, or the platform can cut the device */
    bool is_passive;
    /* called after the platform has switched on power and clocks: reset, identify, configure; if it
     * fails, the platform switches them off without calling deactivate */
    int32_t (*activate)(void *context);
    /* called before the platform switches off power and clocks; the device's contents may be lost
     */
    int32_t (*deactivate)(void *context);
    /* called at each open of the activated device: check that it is present and idle; must be cheap
     */
    int32_t (*check)(void *context);
    /* copy between the core's memory and the device's own, from `device_offset` bytes on; NULL for
     * a device without memory. If the device reads or writes that memory behind the core's data
     * cache, they clean or invalidate it (ferrule/port.h) */
    int32_t (*copy_to)(void *context, uint32_t device_offset, const void *source, size_t bytes);
    int32_t (*copy_from)(void *context, void *destination, uint32_t device_offset, size_t bytes);
    uint32_t memory_bytes; /* size of the device's own memory; copies outside it are rejected */

    /* A device that works beside the core offers the functions below: `submit`, or both copies, or
     * all three, and then `is_over`, `finish` and `abort`. Commands are carried out and collected
     * in the order of their submission. The functions return at once. `abort` and `is_stopped` are
     * also for drivers whose operators wait with ferrule_device_wait(). */

    /* begin a command, a struct of the driver; it is valid during the call only */
    int32_t (*submit)(void *context, const void *command);
    /* begin a copy; the core's memory stays untouched until it is collected */
    int32_t (*submit_copy_to)(void *context, uint32_t device_offset, const void *source,
                              size_t bytes);
    int32_t (*submit_copy_from)(void *context, void *destination, uint32_t device_offset,
                                size_t bytes);
    /* whether the oldest command that was not collected is over, also with an error; called
     * repeatedly while a thread waits */
    bool (*is_over)(void *context);
    /* how many microseconds a waiting thread may sleep before it looks again, if it is not notified
     * (ferrule_device_notify()). FERRULE_WAIT_DEFAULT for a device whose interrupt works: until it
     * is notified. 0, and NULL: it does not sleep */
    uint32_t (*poll_us)(void *context);
    /* collect the oldest command, which is over: check it, and return its result */
    int32_t (*finish)(void *context);
    /* stop and forget all that the device does, whether or not a command was submitted: called
     * after a failed ferrule_device_finish() or ferrule_device_wait(), and for a lost device, which
     * has power but may not be activated. After an error, or if the device does not stop then, the
     * platform cuts it */
    int32_t (*abort)(void *context);
    /* whether the device, as its registers state now, makes no access to memory until it is given
     * work again. It is called repeatedly after `abort`, for FERRULE_DEVICE_STOP_US at most, and
     * once after each activation and before each close. It believes nothing that the driver
     * remembers, and a device that does not answer has not stopped */
    bool (*is_stopped)(void *context);
    /* commands that may be submitted before one is collected; 0 means 1. If there are more, a
     * command may read what an earlier one in the queue writes, so the driver does not access the
     * operands */
    uint32_t depth;
    uint32_t timeout_us; /* limit of the wait for one command, up to FERRULE_WAIT_MOST; 0 means
                            FERRULE_DEVICE_TIMEOUT_US */

    /* store the count of an index, from 0 on, for reports; false if there is none. It is also
     * called for a device without power, so it reads the context and no register: the driver adds
     * up what the hardware counts, such as when it collects a command */
    bool (*statistics)(const void *context, uint32_t index, struct ferrule_statistic *found);
};

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DRIVER_H */
