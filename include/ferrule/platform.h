/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What a platform adapter implements: ten functions and the handle's struct. For adapters
 * alone; users include the platform's header.
 *
 * The state machine, the counting and every check of order are in src_c/device/device.c and are
 * the same everywhere. An adapter's folder has `include/ferrule/platform/<name>.h`, which completes
 * `struct ferrule_device` with a `struct ferrule_device_core core` as its FIRST member and declares
 * its typed bind, and `src/<name>.c`. docs/platforms.md makes one step by step.
 *
 * A handle has two locks. The *guard* is short: it protects the core's fields, and is held while
 * power goes up or down. The *lock* is held from open to close. Both wait for a bounded time. The
 * guard is never held while somebody waits for the lock.
 */
#ifndef FERRULE_PLATFORM_H
#define FERRULE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values that storage with any contents hardly has. */
enum ferrule_device_state {
    FERRULE_DEVICE_UNINITIALISED = 0,
    FERRULE_DEVICE_INITIALISED = 0x46444931, /* not bound */
    FERRULE_DEVICE_BOUND = 0x46444232,
};

/** The part of a handle that is the same on every platform; device.c's own. */
struct ferrule_device_core {
    const struct ferrule_device_core *self; /* where it was initialised: a copy has it wrong */
    uint32_t state;                         /* enum ferrule_device_state */
    uint32_t activations;
    const void *owner; /* of ferrule_platform_thread(), while it is open */
    const struct ferrule_driver *driver;
    void *context;
};

/** @brief For an adapter's bind, after its own checks: what device.c does with it.
 * @retval FERRULE_ERR_STATE  bound already, or not initialised
 */
int32_t ferrule_device_bind_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                   void *context);

/** @brief Whether `dev` may be bound now: not null, initialised, not a copy, not bound, not in an
 * interrupt. Adapters call it first in their bind. */
int32_t ferrule_device_may_bind(const ferrule_device_t *dev);

/* ---- what the adapter implements; `dev` is never null, its handle valid */

/** @brief Whether this is an interrupt or exception handler. */
bool ferrule_platform_in_interrupt(void);

/** @brief Something that is different for two threads that live at once, never NULL. Where there
 * are no threads, one address. */
const void *ferrule_platform_thread(void);

/** @brief Make guard and lock, and forget what was bound. FERRULE_ERR_MEMORY if that fails. */
int32_t ferrule_platform_init(ferrule_device_t *dev);

/** @brief Give back guard and lock; nobody holds the lock, the caller holds the guard, which goes
 * with it. */
int32_t ferrule_platform_destroy(ferrule_device_t *dev);

/** @brief Take the guard. FERRULE_ERR_TIMEOUT, FERRULE_ERR_BUSY where nothing can wait,
 * FERRULE_ERR_HANDLE if it is gone. */
int32_t ferrule_platform_guard(ferrule_device_t *dev);
void ferrule_platform_unguard(ferrule_device_t *dev);

/** @brief Take the lock, without the guard. The same errors. */
int32_t ferrule_platform_lock(ferrule_device_t *dev);
/** @brief Release the lock, which this thread has. */
int32_t ferrule_platform_unlock(ferrule_device_t *dev);

/** @brief Whether the platform's own driver is ready: FERRULE_OK or FERRULE_ERR_UNAVAILABLE. With
 * the guard. */
int32_t ferrule_platform_ready(const ferrule_device_t *dev);

/** @brief Power and clocks on or off. With the guard; may wait. Off is called even if on failed
 * half-way never; errors are mapped to ferrule/status.h. */
int32_t ferrule_platform_power(ferrule_device_t *dev, bool on);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_H */
