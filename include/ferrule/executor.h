/* SPDX-License-Identifier: Apache-2.0 */
/** @file Declarations shared by all generated executors: optional information about one run, and
 * the check of the caller's memory. */
#ifndef FERRULE_EXECUTOR_H
#define FERRULE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/stop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The value of `failed_operator` if no operator has failed. */
#define FERRULE_NO_OPERATOR UINT32_MAX

/** Passed to `ferrule_<model>_run` and owned by its caller; pass NULL if it is not needed.
 */
struct ferrule_run_info {
    uint32_t failed_operator; /* out: index of the operator that failed, or FERRULE_NO_OPERATOR */
    /* in, may be NULL: called before operator `index` runs, and once more with the number of
     * operators at the end; in the caller's thread */
    void (*on_operator)(void *context, uint32_t index);
    void *context; /* in: first argument of on_operator */
    /* in, may be NULL: called after each device call (enum ferrule_device_call), with the index of
     * the operator it belongs to, the device's number and the status of the call; in the caller's
     * thread */
    void (*on_device)(void *context, uint32_t index, uint32_t device, uint32_t call,
                      int32_t status);
    void *device_context; /* in: first argument of on_device */
    /* in, may be NULL: called before operator `index` runs, with the context of on_operator;
     * anything but FERRULE_OK ends the run with that status. Only executors of models with devices
     * call it */
    int32_t (*stop_at)(void *context, uint32_t index);
    struct ferrule_stop stop; /* private: the deadline, and the request of ferrule_run_cancel(); all
                                 zero before the first run */
};

/** @brief Let the run that has this `info` end with FERRULE_ERR_CANCELLED: at its next operator, or
 * at once if it waits for a device. Any context, also another core. Without a run, the request is
 * for the next one that begins with this `info`. It ends with its run, also if it comes too late to
 * end it. For models with devices; the devices must exist during this call. */
void ferrule_run_cancel(struct ferrule_run_info *info);

/** The device calls that an executor makes. */
enum ferrule_device_call {
    FERRULE_CALL_ACTIVATE = 0,
    FERRULE_CALL_OPEN = 1,
    FERRULE_CALL_COPY_TO = 2,
    FERRULE_CALL_COPY_FROM = 3,
    FERRULE_CALL_RUN = 4, /* an operator on the device */
    FERRULE_CALL_CLOSE = 5,
    FERRULE_CALL_DEACTIVATE = 6,
    FERRULE_CALL_FINISH = 7, /* the oldest command of the device was collected */
};

/** @brief Whether an address is a multiple of `alignment`, a power of two. For generated executors.
 */
static inline bool ferrule_is_aligned(const void *address, size_t alignment)
{
    return ((uintptr_t)address & (alignment - 1u)) == 0u;
}

/** @brief Clear the failure of an earlier run. For generated executors; `info` may be NULL. */
static inline void ferrule_run_begin(struct ferrule_run_info *info)
{
    if (info != NULL) {
        info->failed_operator = FERRULE_NO_OPERATOR;
    }
}

/** @brief Notify the caller that operator `index` is next. For generated executors; `info` may be
 * NULL. */
static inline void ferrule_run_notify(const struct ferrule_run_info *info, uint32_t index)
{
    if (info != NULL && info->on_operator != NULL) {
        info->on_operator(info->context, index);
    }
}

/** @brief Record that operator `index` failed, and return `status`. For generated executors; `info`
 * may be NULL. */
static inline int32_t ferrule_run_fail(struct ferrule_run_info *info, uint32_t index,
                                       int32_t status)
{
    if (info != NULL) {
        info->failed_operator = index;
    }
    return status;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_EXECUTOR_H */
