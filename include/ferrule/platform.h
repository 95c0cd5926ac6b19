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
 * A handle has two locks.
 *
 * The *guard* protects the core's fields. It is held for a few instructions, never while a driver
 * or the platform's power is called and never while the lock is waited for; so it needs no
 * time-out and cannot fail, which closing and deactivating rely on: what was taken can always be
 * given back. A critical section or a spin lock does.
 *
 * The *lock* is held from open to close, and while power goes up or down. It is waited for during
 * a bounded time. A thread that has the lock takes and releases the guard inside of it, so that
 * locks are released in the reverse order of taking, as priority inheritance needs.
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
    uint32_t users;    /* threads that wait for the lock or have it */
    bool is_open;      /* its owner opened it; else the owner powers or checks it */
    const void *owner; /* ferrule_platform_thread() of the one that has the lock, else NULL */
    const struct ferrule_driver *driver;
    void *context;
};

/**
 * @brief Whether `dev` may be bound now; adapters call it first in their bind.
 * @retval FERRULE_ERR_ARGUMENT   it is null
 * @retval FERRULE_ERR_INTERRUPT  this is an interrupt
 * @retval FERRULE_ERR_HANDLE     it was not initialised, or is a copy
 * @retval FERRULE_ERR_STATE      it is bound
 */
int32_t ferrule_device_may_bind(const ferrule_device_t *dev);

/**
 * @brief What device.c does with a bind; adapters call it last in theirs, when all that the
 * platform's functions below need is in the handle.
 * @retval FERRULE_ERR_ARGUMENT  `driver` is null
 * @return or what ferrule_device_may_bind() says
 */
int32_t ferrule_device_bind_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                   void *context);

/* ---- what the adapter implements; `dev` is never null, its handle valid */

/** @brief Whether this is an interrupt or exception handler. */
bool ferrule_platform_in_interrupt(void);

/** @brief Something that is different for two threads that live at once, never NULL. Where there
 * are no threads, one address. */
const void *ferrule_platform_thread(void);

/**
 * @brief Make guard and lock, and forget what was bound; the handle's storage has any contents.
 * @retval FERRULE_ERR_MEMORY  the platform has no more of them; nothing is left to give back
 */
int32_t ferrule_platform_init(ferrule_device_t *dev);

/** @brief Give back guard and lock. Nobody has the lock or waits for it; the caller has the guard,
 * which is released and goes with it, even if an error is returned. */
int32_t ferrule_platform_destroy(ferrule_device_t *dev);

/** @brief Take the guard; see above. Not recursive. A handle that is destroyed meanwhile must not
 * hang the caller, who then sees it from the core's fields. */
void ferrule_platform_guard(ferrule_device_t *dev);
/** @brief Release the guard. */
void ferrule_platform_unguard(ferrule_device_t *dev);

/**
 * @brief Take the lock, without the guard. Never called by the thread that has it.
 * @retval FERRULE_ERR_TIMEOUT  another thread had it during the time that the platform waits
 * @retval FERRULE_ERR_BUSY     another thread has it, and the platform is not to wait or can't
 * @return or another error of the platform's; the lock is then not taken
 */
int32_t ferrule_platform_lock(ferrule_device_t *dev);
/** @brief Release the lock, which this thread has; without the guard. */
int32_t ferrule_platform_unlock(ferrule_device_t *dev);

/** @brief Whether the platform's own driver is ready: FERRULE_OK or FERRULE_ERR_UNAVAILABLE. With
 * the lock. */
int32_t ferrule_platform_ready(const ferrule_device_t *dev);

/** @brief Power and clocks on or off, with the lock; may wait. If `on` fails it leaves them off,
 * and off is not called. */
int32_t ferrule_platform_power(ferrule_device_t *dev, bool on);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_H */
