/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file The wait for a device's lock: in the order of priority, then of arrival; private to
 * device.c. docs/platforms.md describes the order.
 */
#ifndef FERRULE_TURN_H
#define FERRULE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ferrule/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long a run that can be cancelled waits for a lock before it looks whether it was. */
#define FERRULE_TURN_SLICE_US 10000u
/* How often a thread gives the lock back to one that has waited longer, before it takes it all the
 * same: the other thread does not run, such as one that was suspended. */
#define FERRULE_TURN_PATIENCE 32u

/* Called with the guard. */
static inline void ferrule_turn_join(struct ferrule_device_core *core, struct ferrule_place *place)
{
    struct ferrule_place **last = &core->waiters;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    place->next = NULL;
    place->waits = true;
    *last = place;
    core->users++; /* makes destroy fail */
}

/* Called with the guard. */
static inline void ferrule_turn_leave(struct ferrule_device_core *core, struct ferrule_place *place)
{
    struct ferrule_place **link = &core->waiters;

    while (*link != NULL) {
        if (*link == place) {
            *link = place->next;
        } else {
            link = &(*link)->next;
        }
    }
    place->waits = false;
}

/* Called with the guard. The lock is for the longest waiter of the highest priority. */
static inline bool ferrule_turn_is_mine(const struct ferrule_device_core *core,
                                        const struct ferrule_place *place)
{
    const struct ferrule_place *first = core->waiters;

    for (const struct ferrule_place *each = first; each != NULL; each = each->next) {
        if (each->priority > first->priority) {
            first = each;
        }
    }
    return first == place;
}

/* A cancelled run must not wait for the lock until its time is over, so the wait is divided.
 * Without `stop`, the platform waits once. */
static inline uint32_t ferrule_turn_slice(uint32_t left, const struct ferrule_stop *stop)
{
    const uint32_t limit = ferrule_stop_limit(stop, left);

    return stop != NULL && limit > FERRULE_TURN_SLICE_US ? FERRULE_TURN_SLICE_US : limit;
}

/* Called with the guard and the lock: gives it back, and lets the others run. */
static inline int32_t ferrule_turn_give_way(ferrule_device_t *dev)
{
    int32_t status;

    ferrule_platform_unguard(dev);
    status = ferrule_platform_unlock(dev);
    ferrule_platform_yield();
    ferrule_platform_guard(dev);
    return status == FERRULE_OK ? FERRULE_ERR_TIMEOUT : status;
}

/* Called without the guard, and returns with it. A kernel may give the lock to any thread, also to
 * the one that has just released it, so a thread that gets it out of turn gives way. */
static inline int32_t ferrule_turn_wait(ferrule_device_t *dev, struct ferrule_place *place,
                                        uint32_t whole, const struct ferrule_stop *stop)
{
    const uint32_t begin = whole == 0u ? 0u : ferrule_platform_now_us();
    uint32_t passed = 0;
    uint32_t patience = FERRULE_TURN_PATIENCE;

    for (;;) {
        const uint32_t slice = ferrule_turn_slice(whole - passed, stop);
        int32_t status = ferrule_stop_status(stop);
        bool ends = status != FERRULE_OK || stop == NULL;

        if (status == FERRULE_OK) {
            status = ferrule_platform_lock(dev, slice);
        }
        passed = whole == 0u ? 0u : ferrule_platform_now_us() - begin;
        ferrule_platform_guard(dev);
        if (status == FERRULE_OK) {
            if (whole == 0u || patience == 0u ||
                ferrule_turn_is_mine(ferrule_device_core_of(dev), place)) {
                return FERRULE_OK;
            }
            patience--;
            ends = false;
            status = ferrule_turn_give_way(dev);
        }
        if (status != FERRULE_ERR_TIMEOUT || ends || passed >= whole) {
            return status;
        }
        place->priority = ferrule_platform_priority(); /* it may have inherited another one */
        ferrule_platform_unguard(dev);
    }
}

/* Called with the guard, which is released while waiting for the lock. A thread that waits in
 * several calls keeps its place from one to the next; `kept` may be NULL. */
static inline int32_t ferrule_turn_take(ferrule_device_t *dev, uint32_t timeout_us,
                                        const struct ferrule_stop *stop, struct ferrule_place *kept)
{
    const uint32_t whole =
        timeout_us == FERRULE_WAIT_DEFAULT ? ferrule_platform_open_timeout_us() : timeout_us;
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    struct ferrule_place own = {NULL, 0, false};
    struct ferrule_place *place = kept == NULL ? &own : kept;
    int32_t status;

    if (core->owner == ferrule_platform_thread()) {
        return FERRULE_ERR_STATE;
    }
    if (whole > FERRULE_WAIT_MOST) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (!place->waits) {
        place->priority = ferrule_platform_priority();
        ferrule_turn_join(core, place);
    }
    status = FERRULE_ERR_BUSY;
    if (whole > 0u || ferrule_turn_is_mine(core, place)) { /* a try does not overtake */
        ferrule_platform_unguard(dev);
        status = ferrule_turn_wait(dev, place, whole, stop);
    }
    if (status == FERRULE_ERR_TIMEOUT && kept != NULL) {
        return status;
    }
    ferrule_turn_leave(core, place);
    if (status != FERRULE_OK) {
        core->users--;
        return status;
    }
    core->turns++;
    core->owner = ferrule_platform_thread();
    return FERRULE_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* FERRULE_TURN_H */
