/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The devices that one run of a generated executor has activated or opened and not yet
 * released. Whatever fails, ferrule_held_end() releases the rest in reverse order.
 */
#ifndef FERRULE_HELD_H
#define FERRULE_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "ferrule/device.h"
#include "ferrule/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The maximum number of entries per device in a run: one for active, one for open. */
#define FERRULE_HELD_PER_DEVICE 2u

/** A device to release. */
struct ferrule_held_entry {
    uint32_t device; /* its number */
    uint32_t call;   /* the call that releases it: FERRULE_CALL_CLOSE or FERRULE_CALL_DEACTIVATE */
};

/** Devices of which a run opens any one. */
struct ferrule_held_pool {
    uint32_t first;   /* the number of its first member */
    uint32_t count;   /* of its members, whose numbers follow each other */
    uint32_t *chosen; /* set to the number of the member that was opened */
};

/** The devices held by a run; lives on the stack of that run. */
struct ferrule_held {
    ferrule_device_t *const *handles; /* by number */
    struct ferrule_held_entry *entries;
    uint32_t capacity;             /* of `entries` */
    uint32_t count;                /* entries in use, in order of acquisition */
    uint32_t index;                /* of the running operator */
    struct ferrule_run_info *info; /* may be NULL */
    struct ferrule_stop *stop;     /* of the run: that of `info`, or `own` */
    struct ferrule_stop own;
};

/* All are called in the thread of the run. Each function that makes a device call reports its
 * status to info->on_device.
 */

/**
 * @brief Begin a run. A request of ferrule_run_cancel() before is for this run. Lost devices are
 * stopped first (see ferrule_device_abort()). Until then such a device may have written to memory
 * of earlier runs, where the inputs or the state of this one may lie, so this run fails even if the
 * device is stopped.
 * @param deadline_us  NULL if it has none; see ferrule_stop_begin()
 * @retval FERRULE_ERR_DEVICE  a device was lost, or still is; see ferrule_device_is_lost()
 * @return or another error of ferrule_device_recover()
 */
int32_t ferrule_held_begin(struct ferrule_held *held, const uint32_t *deadline_us);

/** @brief Notify info->on_operator that operator `index` is next. Return FERRULE_OK, the error of
 * info->stop_at, or an error of ferrule_stop_status(). */
int32_t ferrule_held_next(struct ferrule_held *held, uint32_t index);

/** @brief Call ferrule_device_activate(); the device is held if it succeeds.
 * @retval FERRULE_ERR_MEMORY  no entry is left; the device was not called */
int32_t ferrule_held_activate(struct ferrule_held *held, uint32_t device);

/** @brief Call ferrule_device_open(); the device is held if it succeeds.
 * @retval FERRULE_ERR_MEMORY  no entry is left; the device was not called */
int32_t ferrule_held_open(struct ferrule_held *held, uint32_t device);

/**
 * @brief Open all of several devices; each is held if it succeeds, and none if it fails. The run
 * must not hold a device open before. Devices are opened in the order of the addresses of their
 * handles, so that runs of different models never wait for each other, and they share one limit of
 * the wait.
 * @param devices  their numbers, without repetition
 * @return the first error of a ferrule_device_open_for()
 * @retval FERRULE_ERR_MEMORY  no entry is left
 */
int32_t ferrule_held_open_set(struct ferrule_held *held, const uint32_t *devices, uint32_t count);

/**
 * @brief Open all of several devices like ferrule_held_open_set(), and besides a free member of
 * each pool. While a pool has no free member, the run holds none of the devices, and waits in the
 * shortest queue of a member.
 * @param devices  may be NULL if `count` is 0
 * @retval FERRULE_ERR_TIMEOUT  a pool had no free member, or a device was held, for too long
 * @retval FERRULE_ERR_BUSY     likewise, if the platform cannot wait
 * @return or an error of a ferrule_device_open_for()
 */
int32_t ferrule_held_open_pools(struct ferrule_held *held, const uint32_t *devices, uint32_t count,
                                const struct ferrule_held_pool *pools, uint32_t pool_count);

/** @brief Call ferrule_device_close(); the device is no longer held open, even if it fails. */
int32_t ferrule_held_close(struct ferrule_held *held, uint32_t device);

/** @brief Call ferrule_device_deactivate(); the device is no longer held active, even if it fails.
 */
int32_t ferrule_held_deactivate(struct ferrule_held *held, uint32_t device);

/** @brief Call ferrule_device_copy_to(). */
int32_t ferrule_held_copy_to(struct ferrule_held *held, uint32_t device, uint32_t device_offset,
                             const void *source, size_t bytes);

/** @brief Call ferrule_device_copy_from(). */
int32_t ferrule_held_copy_from(struct ferrule_held *held, uint32_t device, void *destination,
                               uint32_t device_offset, size_t bytes);

/** @brief Call ferrule_device_submit_copy_to(). */
int32_t ferrule_held_submit_copy_to(struct ferrule_held *held, uint32_t device,
                                    uint32_t device_offset, const void *source, size_t bytes);

/** @brief Call ferrule_device_submit_copy_from(). */
int32_t ferrule_held_submit_copy_from(struct ferrule_held *held, uint32_t device, void *destination,
                                      uint32_t device_offset, size_t bytes);

/** @brief Call ferrule_device_finish() for the oldest command of a device, which operator `index`
 * began. An error is that operator's. */
int32_t ferrule_held_finish(struct ferrule_held *held, uint32_t device, uint32_t index,
                            uint32_t timeout_us);

/** @brief Report `status`, the result of an operator on a device, and return it. */
int32_t ferrule_held_ran(const struct ferrule_held *held, uint32_t device, int32_t status);

/** @brief Release every held device in reverse order. Return the run's `status` if it is an error,
 * otherwise the first error of a release. An error is recorded in info->failed_operator. */
int32_t ferrule_held_end(struct ferrule_held *held, int32_t status);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_HELD_H */
