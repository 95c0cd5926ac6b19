/* SPDX-License-Identifier: Apache-2.0 */
/** @file Deadline and cancellation of a run, for the calls that wait. */
#ifndef FERRULE_STOP_H
#define FERRULE_STOP_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ferrule_device;

/** The time limit of a call that waits: the platform's own, or the device's. */
#define FERRULE_WAIT_DEFAULT UINT32_MAX
/** The longest other limit in microseconds, 35 minutes: the clock wraps at 2^32. Calls refuse a
 * longer one with FERRULE_ERR_ARGUMENT. */
#define FERRULE_WAIT_MOST ((uint32_t)INT32_MAX)

/** What ends a run early; all zero for a run that has no deadline and is not cancelled. */
struct ferrule_stop {
    volatile bool requested; /* by ferrule_stop_request() */
    bool has_deadline;
    uint32_t deadline_us;                    /* on the clock of ferrule_platform_now_us() */
    struct ferrule_device *volatile waiting; /* the device that the run waits for, or NULL */
};

/** @brief Clear the request of an earlier run, and set the deadline: a time on the clock of
 * ferrule_platform_now_us(), at most FERRULE_WAIT_MOST microseconds from now, or NULL for none. */
void ferrule_stop_begin(struct ferrule_stop *stop, const uint32_t *deadline_us);

/** @brief Set the deadline alone; a request stays. By the thread of the run. */
void ferrule_stop_set_deadline(struct ferrule_stop *stop, const uint32_t *deadline_us);

/** @brief Request that the run ends, and wake it if it waits for a device. Any context. The devices
 * of the run must not be destroyed during this call. */
void ferrule_stop_request(struct ferrule_stop *stop);

/**
 * @brief Return FERRULE_OK if the run may go on. `stop` may be NULL.
 * @retval FERRULE_ERR_CANCELLED  it was requested
 * @retval FERRULE_ERR_TIMEOUT    the deadline has passed
 */
int32_t ferrule_stop_status(const struct ferrule_stop *stop);

/** @brief Return how many microseconds a call may wait: `timeout_us`, or the rest of the time until
 * the deadline if that is less. `stop` may be NULL. */
uint32_t ferrule_stop_limit(const struct ferrule_stop *stop, uint32_t timeout_us);

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_STOP_H */
