/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The interface that a platform adapter implements: seventeen functions and the handle's
 * struct. Only adapters include it; users include the platform's header.
 *
 * The state machine, the counting and all checks of the call order are in src_c/device/device.c and
 * are the same on every platform. An adapter's folder has `include/ferrule/platform/<name>.h`,
 * which completes `struct ferrule_device` with a `struct ferrule_device_core core` as its FIRST
 * member and declares its typed bind, and `src/<name>.c`. docs/platforms.md develops one step by
 * step.
 *
 * A handle has two locks.
 *
 * The *guard* protects the core's fields. It is held for a few instructions, never during a call of
 * a driver or of the platform's power function, and never while waiting for the lock. It therefore
 * needs no time-out and cannot fail. Closing and deactivating rely on this: a resource that was
 * acquired can always be released. A critical section or a spin lock is sufficient.
 *
 * The *lock* is held from open to close, and while power is switched. Waiting for it is bounded in
 * time. It need not be fair: the core keeps the order of the waiters, and a thread that gets the
 * lock out of turn releases it and yields. The platform's lock is still what all of them wait for,
 * because it alone knows priority inheritance. A thread that holds the lock takes and releases the
 * guard inside it, so locks are released in reverse order, as priority inheritance requires.
 */
#ifndef FERRULE_PLATFORM_H
#define FERRULE_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "ferrule/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Values that are unlikely in uninitialised storage. */
enum ferrule_device_state {
    FERRULE_DEVICE_UNINITIALISED = 0,
    FERRULE_DEVICE_INITIALISED = 0x46444931, /* not bound */
    FERRULE_DEVICE_BOUND = 0x46444232,
};

/** The place of a thread among those that wait for the lock of a handle; on the thread's stack. */
struct ferrule_place {
    struct ferrule_place *next; /* of the thread that came after it */
    int32_t priority;
    bool waits; /* it is in the list of a handle */
};

/** Whether a bound device can be used. */
enum ferrule_device_health {
    FERRULE_DEVICE_FINE = 0,
    FERRULE_DEVICE_CUT,  /* the platform has cut it; the next open switches it on again */
    FERRULE_DEVICE_LOST, /* it could not be stopped, and may still access memory */
};

/** The part of a handle that is the same on every platform; private to device.c, but for `can_cut`.
 */
struct ferrule_device_core {
    const struct ferrule_device_core *self; /* address at initialisation; wrong in a copy */
    uint32_t state;                         /* enum ferrule_device_state */
    uint32_t activations;
    uint32_t users;                /* threads that wait for the lock or hold it */
    struct ferrule_place *waiters; /* in order of arrival */
    uint32_t turns;                /* how often the lock was taken; wraps */
    bool is_open;      /* opened by its owner; if false, the owner is powering or checking it */
    bool can_cut;      /* ferrule_platform_cut() has means for the device; set by the adapter */
    const void *owner; /* ferrule_platform_thread() of the lock's holder, NULL if there is none */
    const struct ferrule_driver *driver;
    void *context;
    uint32_t timeout_us;       /* limit of the wait for one command; 0 for the driver's */
    uint32_t in_flight;        /* commands that were begun and not collected */
    uint32_t health;           /* enum ferrule_device_health */
    struct ferrule_stop *stop; /* of the run that has it open; may be NULL */
};

/** @brief Return the common part of a handle, which is its first member. */
static inline struct ferrule_device_core *ferrule_device_core_of(ferrule_device_t *dev)
{
    return (struct ferrule_device_core *)dev;
}

/**
 * @brief Check that `dev` may be bound now; adapters call this first in their bind function.
 * @retval FERRULE_ERR_ARGUMENT   it is null
 * @retval FERRULE_ERR_INTERRUPT  this is an interrupt
 * @retval FERRULE_ERR_HANDLE     it was not initialised, or is a copy
 * @retval FERRULE_ERR_STATE      it is bound
 */
int32_t ferrule_device_may_bind(const ferrule_device_t *dev);

/**
 * @brief Complete a bind; adapters call this last in their bind function, once the handle contains
 * everything that the platform functions below need. An adapter that has means to cut this device
 * has set `core.can_cut`.
 * @retval FERRULE_ERR_ARGUMENT     `driver` is null
 * @retval FERRULE_ERR_UNSTOPPABLE  nothing could stop the device after an error; see
 *                                  ferrule_device_abort()
 * @return or an error of ferrule_device_may_bind()
 */
int32_t ferrule_device_bind_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                   void *context);

/**
 * @brief Open the device like ferrule_device_open_for(), for a thread that looks at other devices
 * from time to time: after FERRULE_ERR_TIMEOUT it keeps its place for the next call. Others do not
 * overtake it meanwhile, so it comes back soon, and ends with ferrule_device_leave().
 * @param kept  all zero before the first call, and for this handle only
 */
int32_t ferrule_device_open_in_turn(ferrule_device_t *dev, uint32_t timeout_us,
                                    struct ferrule_stop *stop, struct ferrule_place *kept);

/** @brief Give up a place; without an effect on one that is not kept. */
void ferrule_device_leave(ferrule_device_t *dev, struct ferrule_place *kept);

/** @brief Return the number of threads that have the lock or wait for it, and add the number of
 * turns so far to `*turns`: an estimate, because other threads go on. */
uint32_t ferrule_device_users(ferrule_device_t *dev, uint32_t *turns);

/** @brief Order the memory accesses before the call before those after it, as seen by
 * interrupts and other cores. Compilers have it for cores without atomic accesses, too, and under
 * thread sanitizers, which refuse a fence of C11. */
static inline void ferrule_stop_fence(void)
{
    __sync_synchronize();
}

/* ---- implemented by the adapter; `dev` is never null and is a valid handle */

/** @brief Return whether this is an interrupt or exception handler. */
bool ferrule_platform_in_interrupt(void);

/** @brief Return a pointer that identifies the current thread among all live threads, never NULL.
 * Without threads, always the same address. */
const void *ferrule_platform_thread(void);

/** @brief Return the priority of the current thread, with what it has inherited; a larger number is
 * more urgent. Without threads, or if all are equal, a constant. The guard is held. */
int32_t ferrule_platform_priority(void);

/** @brief Let other threads of this priority run, if any is ready. No lock is held. */
void ferrule_platform_yield(void);

/**
 * @brief Create the guard and the lock, and clear the binding; the handle's storage has arbitrary
 * contents.
 * @retval FERRULE_ERR_MEMORY  the platform has none left; nothing remains allocated
 */
int32_t ferrule_platform_init(ferrule_device_t *dev);

/** @brief Release the guard and destroy both locks, even if an error is returned. No thread holds
 * the lock or waits for it; the caller holds the guard. */
int32_t ferrule_platform_destroy(ferrule_device_t *dev);

/** @brief Take the guard; see above. Not recursive. If the handle is destroyed meanwhile, this must
 * still return; the caller then detects it from the core's fields. */
void ferrule_platform_guard(ferrule_device_t *dev);
/** @brief Release the guard. */
void ferrule_platform_unguard(ferrule_device_t *dev);

/**
 * @brief Take the lock; the guard is not held. Never called by the thread that already holds the
 * lock.
 * @param timeout_us  0 does not wait; at most FERRULE_WAIT_MOST; rounded up to the platform's unit
 * @retval FERRULE_ERR_TIMEOUT  another thread held it for the whole time
 * @retval FERRULE_ERR_BUSY     another thread holds it, and the time is 0 or the platform cannot
 *                              wait
 * @return or another error of the platform; the lock is then not taken
 */
int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us);
/** @brief Return how long ferrule_device_open() waits for the lock, in microseconds; at most
 * FERRULE_WAIT_MOST. */
uint32_t ferrule_platform_open_timeout_us(void);

/** @brief Release the lock, which this thread holds; the guard is not held. */
int32_t ferrule_platform_unlock(ferrule_device_t *dev);

/** @brief Return FERRULE_OK if the platform's own driver is ready, otherwise
 * FERRULE_ERR_UNAVAILABLE. The lock is held. */
int32_t ferrule_platform_ready(const ferrule_device_t *dev);

/** @brief Switch power and clocks on or off; may wait. The lock is held. If switching on fails, the
 * function leaves them off, and it is not called to switch them off; nor after a confirmed cut. */
int32_t ferrule_platform_power(ferrule_device_t *dev, bool on);

/**
 * @brief Stop the device by force, by its power or its reset line, so that it makes no access to
 * memory any more, also after its power comes back. FERRULE_OK confirms it: the means were used,
 * and what the platform can read back says that they took effect. A call that only succeeded, such
 * as that of a function which may do nothing for this device, is no confirmation. After it, power
 * and clocks are off as by ferrule_platform_power(), until that switches them on. The lock is held.
 * @retval FERRULE_ERR_UNSUPPORTED  the platform has no such means for this device
 * @return or an error of the platform; the device may still work
 */
int32_t ferrule_platform_cut(ferrule_device_t *dev);

/** @brief Return the time in microseconds, as fine as the platform can; it wraps at 2^32. Any
 * context. */
uint32_t ferrule_platform_now_us(void);

/**
 * @brief Let other threads run, or the core sleep, until ferrule_platform_notify() is called for
 * the handle or the time has passed. A notification that came before, since the last wait returned,
 * ends the wait at once. It may return earlier. The lock is held.
 * @param timeout_us  greater than 0, at most FERRULE_WAIT_MOST. The wait ends no earlier, and at
 *                    most a tick of the platform later; for less than a tick it does not sleep, and
 *                    may return at once
 * @retval FERRULE_OK           it was notified, or returned early
 * @retval FERRULE_ERR_TIMEOUT  the time has passed
 * @return or an error of the platform: it cannot wait
 */
int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us);

/** @brief End the wait of the thread that has the lock, or its next one. Any context. */
void ferrule_platform_notify(ferrule_device_t *dev);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_PLATFORM_H */
