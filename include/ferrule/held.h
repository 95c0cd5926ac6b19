/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file What one run of a generated executor holds of devices: each that it has activated or opened
 * and not given back. Whatever fails, ferrule_held_end() gives back the rest, the last first.
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

/** The entries that a run needs at most for each device: active, and open. */
#define FERRULE_HELD_PER_DEVICE 2u

/** Something to give back. */
struct ferrule_held_entry {
    uint32_t device; /* its number */
    uint32_t call;   /* what gives it back: FERRULE_CALL_CLOSE or FERRULE_CALL_DEACTIVATE */
};

/** What a run holds; it lives as long as the run, on its stack. */
struct ferrule_held {
    ferrule_device_t *const *handles; /* by number */
    struct ferrule_held_entry *entries;
    uint32_t capacity;             /* of `entries` */
    uint32_t count;                /* entries in use, in the order in which they were taken */
    uint32_t index;                /* the operator that runs */
    struct ferrule_run_info *info; /* may be NULL */
};

/* All are called in the thread of the run. Those that return a status tell info->on_device of it.
 */

/** @brief Tell info->on_operator that operator `index` comes next. */
void ferrule_held_next(struct ferrule_held *held, uint32_t index);

/** @brief ferrule_device_activate(); held if it succeeds.
 * @retval FERRULE_ERR_MEMORY  there is no entry left; the device was not called */
int32_t ferrule_held_activate(struct ferrule_held *held, uint32_t device);

/** @brief ferrule_device_open(); held if it succeeds.
 * @retval FERRULE_ERR_MEMORY  there is no entry left; the device was not called */
int32_t ferrule_held_open(struct ferrule_held *held, uint32_t device);

/** @brief ferrule_device_close(); not held any more, even if it fails. */
int32_t ferrule_held_close(struct ferrule_held *held, uint32_t device);

/** @brief ferrule_device_deactivate(); not held any more, even if it fails. */
int32_t ferrule_held_deactivate(struct ferrule_held *held, uint32_t device);

/** @brief ferrule_device_copy_to(). */
int32_t ferrule_held_copy_to(struct ferrule_held *held, uint32_t device, uint32_t device_offset,
                             const void *source, size_t bytes);

/** @brief ferrule_device_copy_from(). */
int32_t ferrule_held_copy_from(struct ferrule_held *held, uint32_t device, void *destination,
                               uint32_t device_offset, size_t bytes);

/** @brief Returns `status`, which an operator on a device gave. */
int32_t ferrule_held_ran(const struct ferrule_held *held, uint32_t device, int32_t status);

/** @brief Give back all that is held, the last first, and return `status`: that of the run, or the
 * first error of giving back. An error is noted in info->failed_operator. */
int32_t ferrule_held_end(struct ferrule_held *held, int32_t status);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_HELD_H */
