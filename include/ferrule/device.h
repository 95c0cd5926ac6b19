/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The device API: one handle per device, the same calls on every platform.
 *
 * The user owns a handle (a `struct ferrule_device`, which the platform's header completes), keeps
 * it where it was initialised until it is destroyed, and never copies it. Nothing allocates.
 *
 *   init -> bind -> activate -> open -> (copies, operators) -> close -> deactivate -> destroy
 *
 * activate and deactivate control power and clocks. They are counted, so an application may call
 * them around many runs while the executor calls them around a few operators. open locks the device
 * for the calling thread and checks it; it waits for another owner for a bounded time. open is not
 * counted: a second open by the owner is a state error. The table in docs/platforms.md lists the
 * calls allowed in each state and the status that every other call returns.
 *
 * Every function returns, in this order of precedence, FERRULE_ERR_ARGUMENT for a null handle,
 * FERRULE_ERR_INTERRUPT in an interrupt, and FERRULE_ERR_HANDLE for a handle that was not
 * initialised or is a copy (except in init, which initialises it). The state is checked next, the
 * other arguments last. A failed call changes nothing, unless stated otherwise. If a call succeeds
 * but the platform fails to release a lock, the call still returns the platform's error.
 *
 * init, bind and destroy are called by one thread at a time, before other threads start using the
 * handle and after they have stopped. If a thread still waits in a call, destroy returns
 * FERRULE_ERR_BUSY. All other functions may be called by any threads concurrently. A thread must
 * close a device that it opened before it ends: no other thread can. While a thread is in a call,
 * it must not be ended by another one.
 *
 * Threads that wait for a device get it in the order of their priorities, and those of the same
 * priority in the order in which they began to wait. A thread that closes a device and opens it
 * again at once comes after all that wait. Limits of waits are FERRULE_WAIT_DEFAULT, or at most
 * FERRULE_WAIT_MOST microseconds.
 */
#ifndef FERRULE_DEVICE_H
#define FERRULE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/status.h"
#include "ferrule/stop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Completed by the platform's header, such as ferrule/platform/bare_metal.h. */
struct ferrule_device;
typedef struct ferrule_device ferrule_device_t;

/**
 * @brief Initialise a handle in storage with arbitrary contents. The platform's bind comes next.
 * @retval FERRULE_ERR_STATE   it is already initialised: destroy it first. Also where a handle was
 *                             at the same address, such as in a function that was called before,
 *                             and was not destroyed
 * @retval FERRULE_ERR_MEMORY  the platform has no locks left
 */
int32_t ferrule_device_init(ferrule_device_t *dev);

/** A driver without functions, for a device that is bound before its driver is known. The context
 * is then the address of the device's registers, or NULL if the platform does not know it. */
extern const struct ferrule_driver ferrule_no_driver;

/**
 * @brief Give a device that is bound to ferrule_no_driver its driver and context; a device that is
 * bound to `driver` already keeps its context.
 * @param base  the member of the context for the address of the registers: it gets the address that
 *              the platform's bind has stored, if any; NULL for a device without registers
 * @retval FERRULE_ERR_STATE        not bound, or active
 * @retval FERRULE_ERR_ARGUMENT     `driver` is null, another driver is bound, or there is no
 *                                  address: neither in the binding nor in `*base`
 * @retval FERRULE_ERR_UNSTOPPABLE  as the platform's bind: nothing could stop the device
 */
int32_t ferrule_device_set_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                  void *context, uintptr_t *base);

/**
 * @brief Increment the activation count; the first activation switches on power and clocks.
 * @retval FERRULE_ERR_STATE    not bound, counted 2^32 - 1 times, or called by its own driver's
 *                              activate, deactivate or check
 * @retval FERRULE_ERR_TIMEOUT  another thread was powering the device up or down, or checking it,
 *                              for too long
 * @retval FERRULE_ERR_BUSY     likewise, if the wait time is zero
 * @retval FERRULE_ERR_DEVICE   the device is lost, or works although nobody gave it work, and could
 *                              not be stopped; see ferrule_device_abort()
 * @return or an error of the platform or the driver; the device is then not powered
 */
int32_t ferrule_device_activate(ferrule_device_t *dev);

/**
 * @brief Decrement the activation count; the last deactivation switches off power and clocks.
 * @retval FERRULE_ERR_STATE    it is not active, or called by its own driver's activate, deactivate
 *                              or check
 * @retval FERRULE_ERR_BUSY     this would be the last, and a thread has the device open, or is
 *                              opening it and the wait time is zero; the device stays active
 * @retval FERRULE_ERR_TIMEOUT  this would be the last, and another thread was opening the device
 *                              for too long; the device stays active
 * @retval FERRULE_ERR_DEVICE   the device is lost, and stays so, even if its power is switched off
 * @return or the first error of the driver or the platform; the device is inactive nevertheless
 */
int32_t ferrule_device_deactivate(ferrule_device_t *dev);

/**
 * @brief Lock the device for this thread and check that it works. Waits for another owner for a
 * bounded time.
 * @retval FERRULE_ERR_STATE        it is not active (or was deactivated while this thread waited),
 *                                  or this thread has it open already
 * @retval FERRULE_ERR_TIMEOUT      another thread held the device for too long
 * @retval FERRULE_ERR_BUSY         another thread holds the device and the wait time is zero
 * @retval FERRULE_ERR_UNAVAILABLE  the platform's driver is not ready
 * @return or an error of the driver's check; the device is then not open
 */
int32_t ferrule_device_open(ferrule_device_t *dev);

/**
 * @brief Open the device like ferrule_device_open(), with a time limit of its own.
 * @param timeout_us  0 does not wait, and overtakes no thread of the same or a higher priority
 *                    that waits; FERRULE_WAIT_DEFAULT is the platform's wait time
 * @param stop        may be NULL; ends this wait, and the waits for the device until it is closed.
 *                    A request is seen after 10 ms and two ticks of the platform, at the latest
 * @retval FERRULE_ERR_ARGUMENT  `timeout_us` exceeds FERRULE_WAIT_MOST
 * @return as ferrule_device_open() and ferrule_stop_status()
 */
int32_t ferrule_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                struct ferrule_stop *stop);

/**
 * @brief Unlock the device for the next thread. It is stopped first, as by ferrule_device_abort(),
 * if commands are in flight or the driver's `is_stopped` finds it working.
 * @retval FERRULE_ERR_STATE   it is not open
 * @retval FERRULE_ERR_OWNER   another thread opened the device and keeps it
 * @retval FERRULE_ERR_DEVICE  as ferrule_device_abort(); the device is closed nevertheless
 */
int32_t ferrule_device_close(ferrule_device_t *dev);

/**
 * @brief Undo init and bind; the storage belongs to the user again.
 * @retval FERRULE_ERR_BUSY    it is active or open, or a thread is in one of its calls
 * @retval FERRULE_ERR_DEVICE  it is lost: a new handle would not know; see ferrule_device_recover()
 * @return or an error of the platform; the handle is destroyed nevertheless
 */
int32_t ferrule_device_destroy(ferrule_device_t *dev);

/**
 * @brief Copy into the device's own memory. The driver is not called for zero bytes.
 * @retval FERRULE_ERR_STATE        it is not open
 * @retval FERRULE_ERR_OWNER        another thread opened it
 * @retval FERRULE_ERR_DEVICE       it was cut or lost since it was opened
 * @retval FERRULE_ERR_UNSUPPORTED  the device has no memory
 * @retval FERRULE_ERR_ARGUMENT     the range ends outside the memory, or `source` is null and
 *                                  `bytes` is not zero
 * @return or an error of the driver; the contents of the range are then undefined
 */
int32_t ferrule_device_copy_to(ferrule_device_t *dev, uint32_t device_offset, const void *source,
                               size_t bytes);

/** @brief Copy out of the device's own memory; otherwise like ferrule_device_copy_to(). */
int32_t ferrule_device_copy_from(ferrule_device_t *dev, void *destination, uint32_t device_offset,
                                 size_t bytes);

/**
 * @brief Store the bound context in `*context`, for a driver's operators, which receive the handle
 * as a `void *resource_handle`.
 * @retval FERRULE_ERR_STATE     it is not open
 * @retval FERRULE_ERR_OWNER     another thread opened it
 * @retval FERRULE_ERR_DEVICE    it was cut or lost since it was opened
 * @retval FERRULE_ERR_ARGUMENT  `context` is null, or a driver other than `driver` is bound
 */
int32_t ferrule_device_context(ferrule_device_t *dev, const struct ferrule_driver *driver,
                               void **context);

/** The limit of the wait for one command, if neither the driver nor the handle has another. */
#ifndef FERRULE_DEVICE_TIMEOUT_US
#define FERRULE_DEVICE_TIMEOUT_US 1000000u
#endif

/** How long a device may take to stop after its driver's abort. */
#ifndef FERRULE_DEVICE_STOP_US
#define FERRULE_DEVICE_STOP_US 1000u
#endif

/**
 * @brief Set the limit of the wait for one command of this device, in place of its driver's. By one
 * thread, before other threads use the handle; 0 restores the driver's.
 * @retval FERRULE_ERR_STATE     it is not bound
 * @retval FERRULE_ERR_ARGUMENT  it exceeds FERRULE_WAIT_MOST
 */
int32_t ferrule_device_set_timeout(ferrule_device_t *dev, uint32_t timeout_us);

/**
 * @brief Begin a command. The memory that it reads and writes belongs to the device until
 * ferrule_device_finish() or ferrule_device_abort() returns.
 * @param command  a struct of the driver; not used after the call
 * @retval FERRULE_ERR_STATE        it is not open
 * @retval FERRULE_ERR_OWNER        another thread opened it
 * @retval FERRULE_ERR_DEVICE       it was cut or lost since it was opened
 * @retval FERRULE_ERR_ARGUMENT     a driver other than `driver` is bound
 * @retval FERRULE_ERR_UNSUPPORTED  the driver has no `submit`
 * @retval FERRULE_ERR_BUSY         the driver's `depth` of commands is in flight
 * @return or an error of the driver; nothing was begun then
 */
int32_t ferrule_device_submit(ferrule_device_t *dev, const struct ferrule_driver *driver,
                              const void *command);

/** @brief Begin a copy into the device's own memory; otherwise like ferrule_device_copy_to() and
 * ferrule_device_submit(). */
int32_t ferrule_device_submit_copy_to(ferrule_device_t *dev, uint32_t device_offset,
                                      const void *source, size_t bytes);

/** @brief Begin a copy out of the device's own memory; otherwise like
 * ferrule_device_submit_copy_to(). */
int32_t ferrule_device_submit_copy_from(ferrule_device_t *dev, void *destination,
                                        uint32_t device_offset, size_t bytes);

/**
 * @brief Wait for the oldest command, and collect its result. After any error, all commands are
 * aborted as by ferrule_device_abort().
 * @param timeout_us  FERRULE_WAIT_DEFAULT for the device's own limit
 * @retval FERRULE_ERR_STATE      it is not open, or no command is in flight
 * @retval FERRULE_ERR_ARGUMENT   `timeout_us` exceeds FERRULE_WAIT_MOST; nothing is aborted
 * @retval FERRULE_ERR_OWNER      another thread opened it
 * @retval FERRULE_ERR_TIMEOUT    the command took too long, or the deadline has passed
 * @retval FERRULE_ERR_CANCELLED  the run was cancelled
 * @retval FERRULE_ERR_DEVICE     the device could not be stopped, or was cut or lost before
 * @return or an error of the driver
 */
int32_t ferrule_device_finish(ferrule_device_t *dev, uint32_t timeout_us);

/**
 * @brief Stop the device, whatever it does, and forget all commands: it makes no access to memory
 * afterwards. It is stopped once the driver's abort has succeeded and `is_stopped` confirms it, at
 * the latest after FERRULE_DEVICE_STOP_US; for a passive device, the abort is sufficient. Otherwise
 * the platform cuts the device, and the next open switches it on again. If the platform does not
 * confirm this, the handle is lost: the device may still write to memory. Each
 * ferrule_device_recover(), activation, open and last deactivation then tries to stop it again, and
 * returns an error as long as this fails.
 * @retval FERRULE_ERR_STATE   it is not open
 * @retval FERRULE_ERR_OWNER   another thread opened it
 * @retval FERRULE_ERR_DEVICE  the handle is lost
 */
int32_t ferrule_device_abort(ferrule_device_t *dev);

/**
 * @brief Stop a device whose handle is lost; does nothing with any other. Generated executors call
 * it before they use memory. The device must not be open in this thread.
 * @retval FERRULE_ERR_DEVICE  it cannot be stopped
 * @return or as ferrule_device_activate()
 */
int32_t ferrule_device_recover(ferrule_device_t *dev);

/** @brief Return the number of commands in flight; for the thread that has the device open. */
uint32_t ferrule_device_in_flight(const ferrule_device_t *dev);

/** @brief Return whether the handle is lost; see ferrule_device_abort(). */
bool ferrule_device_is_lost(const ferrule_device_t *dev);

/**
 * @brief Wait until `is_over` returns true; for operators of drivers without `submit`. It is called
 * with the bound context, at least after each ferrule_device_notify() and when the time has passed.
 * The wait ends no earlier than its limit, and at most a tick of the platform later.
 * If the wait fails, the device is stopped as by ferrule_device_abort().
 * @param timeout_us  FERRULE_WAIT_DEFAULT for the device's own limit
 * @retval FERRULE_ERR_ARGUMENT  `is_over` is null; nothing is stopped
 * @return or as ferrule_device_finish()
 */
int32_t ferrule_device_wait(ferrule_device_t *dev, bool (*is_over)(void *context),
                            uint32_t timeout_us);

/**
 * @brief Store one of the device's own counts, as its driver states them; also of a device that is
 * not active. Another thread may use the device meanwhile; its counts are then those before or
 * after its command.
 * @retval FERRULE_ERR_STATE        it is not bound
 * @retval FERRULE_ERR_UNSUPPORTED  the driver has no counts
 * @retval FERRULE_ERR_ARGUMENT     `found` is null, or the driver has no count of this index
 */
int32_t ferrule_device_statistic(ferrule_device_t *dev, uint32_t index,
                                 struct ferrule_statistic *found);

/** @brief Wake the thread that waits for the device, or the next one that begins to wait. Any
 * context; interrupt handlers call it after the driver's own handler. Without an effect on a handle
 * that is not bound. */
void ferrule_device_notify(ferrule_device_t *dev);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DEVICE_H */
