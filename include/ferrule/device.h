/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The device API: one handle per device, the same calls on every platform.
 *
 * The user owns a handle (a `struct ferrule_device`, which the platform's header completes), keeps
 * it where it was initialised until it is destroyed, and never copies it. Nothing allocates.
 *
 *   init -> bind -> activate -> open -> (copies, operators) -> close -> deactivate -> destroy
 *
 * activate and deactivate are power and clocks: counted, so that a user round many runs and the
 * executor round a few operators may both call them. open locks the device for the calling thread
 * and checks it; it waits for another owner, during a bounded time. It is not counted: a second
 * open by its owner is a state error. Which call is allowed in which state, and what every other
 * one returns, is the table in docs/platforms.md.
 *
 * Every function returns, in this order of precedence, FERRULE_ERR_ARGUMENT for a null handle,
 * FERRULE_ERR_INTERRUPT in an interrupt, and FERRULE_ERR_HANDLE for a handle that was not
 * initialised or is a copy (but for init, which makes one of it). Then comes the state, and other
 * arguments at last. An error changes nothing, but where it says so. If the platform fails to
 * release a lock, the call that did its work returns the platform's error all the same.
 *
 * init, bind and destroy are for one thread at a time, before the others know the handle and after
 * they have forgotten it; a thread that still waits in a call has not: destroy then returns
 * FERRULE_ERR_BUSY. All others may be called by any threads at once. A thread closes what it opened
 * before it ends: nobody else can.
 */
#ifndef FERRULE_DEVICE_H
#define FERRULE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "ferrule/driver.h"
#include "ferrule/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Completed by the platform's header, such as ferrule/platform/bare_metal.h. */
struct ferrule_device;
typedef struct ferrule_device ferrule_device_t;

/**
 * @brief Make a handle of storage with any contents. Next comes the platform's bind.
 * @retval FERRULE_ERR_STATE   it is one already: destroy it first
 * @retval FERRULE_ERR_MEMORY  the platform has no more locks
 */
int32_t ferrule_device_init(ferrule_device_t *dev);

/**
 * @brief Give the device power and clocks, unless it has them; count.
 * @retval FERRULE_ERR_STATE    not bound, counted 2^32 - 1 times, or called by its own driver's
 *                              activate, deactivate or check
 * @retval FERRULE_ERR_TIMEOUT  another thread was powering it up or down, or checking it, for too
 *                              long
 * @retval FERRULE_ERR_BUSY     likewise, where the time to wait is zero
 * @return or what the platform or the driver said; it then has no power
 */
int32_t ferrule_device_activate(ferrule_device_t *dev);

/**
 * @brief Count down; the last takes power and clocks.
 * @retval FERRULE_ERR_STATE    it is not active, or called by its own driver's activate, deactivate
 *                              or check
 * @retval FERRULE_ERR_BUSY     this would be the last, and somebody has it open, or is opening it
 *                              where the time to wait is zero; it stays active
 * @retval FERRULE_ERR_TIMEOUT  this would be the last, and another thread was opening it for too
 *                              long; it stays active
 * @return or what the driver or the platform said, the first of them; it is inactive all the same
 */
int32_t ferrule_device_deactivate(ferrule_device_t *dev);

/**
 * @brief Lock the device for this thread and check that it works. Waits for another owner, during a
 * bounded time.
 * @retval FERRULE_ERR_STATE        it is not active (or was deactivated while this thread waited),
 *                                  or this thread has it open already
 * @retval FERRULE_ERR_TIMEOUT      another thread held it for too long
 * @retval FERRULE_ERR_BUSY         another thread holds it and the time to wait is zero
 * @retval FERRULE_ERR_UNAVAILABLE  the platform's driver is not ready
 * @return or what the driver's check said; it is then not open
 */
int32_t ferrule_device_open(ferrule_device_t *dev);

/**
 * @brief Let the next one in.
 * @retval FERRULE_ERR_STATE  it is not open
 * @retval FERRULE_ERR_OWNER  another thread opened it, and keeps it
 */
int32_t ferrule_device_close(ferrule_device_t *dev);

/**
 * @brief Undo init and bind; the storage is the user's again.
 * @retval FERRULE_ERR_BUSY  it is active or open, or a thread is in one of its calls
 * @return or what the platform said; it is destroyed all the same
 */
int32_t ferrule_device_destroy(ferrule_device_t *dev);

/**
 * @brief Copy into the device's own memory. Zero bytes are copied without a call of the driver.
 * @retval FERRULE_ERR_STATE        it is not open
 * @retval FERRULE_ERR_OWNER        another thread opened it
 * @retval FERRULE_ERR_UNSUPPORTED  the device has no memory of its own
 * @retval FERRULE_ERR_ARGUMENT     the range ends outside of the memory, or `source` is null and
 *                                  `bytes` is not zero
 * @return or what the driver said; the range's contents are then not known
 */
int32_t ferrule_device_copy_to(ferrule_device_t *dev, uint32_t device_offset, const void *source,
                               size_t bytes);

/** @brief Copy out of the device's own memory; as ferrule_device_copy_to(). */
int32_t ferrule_device_copy_from(ferrule_device_t *dev, void *destination, uint32_t device_offset,
                                 size_t bytes);

/**
 * @brief For a driver's operators, which get the handle as a `void *resource_handle`: the context
 * that was bound, in `*context`.
 * @retval FERRULE_ERR_STATE     it is not open
 * @retval FERRULE_ERR_OWNER     another thread opened it
 * @retval FERRULE_ERR_ARGUMENT  `context` is null, or another driver than `driver` is bound
 */
int32_t ferrule_device_context(ferrule_device_t *dev, const struct ferrule_driver *driver,
                               void **context);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_DEVICE_H */
