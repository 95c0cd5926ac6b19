/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/device.h"

#include "ferrule/health.h"
#include "ferrule/platform.h"
#include "ferrule/turn.h"

static bool is_handle(const ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = (const struct ferrule_device_core *)dev;

    return core->self == core && (core->state == (uint32_t)FERRULE_DEVICE_INITIALISED ||
                                  core->state == (uint32_t)FERRULE_DEVICE_BOUND);
}

/* Takes the guard if the call is allowed. The guard exists only in a valid handle, so the first
 * check is made without it; the second check detects a handle that was destroyed before the guard
 * was taken. */
static int32_t enter(ferrule_device_t *dev)
{
    if (dev == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (ferrule_platform_in_interrupt()) {
        return FERRULE_ERR_INTERRUPT;
    }
    if (!is_handle(dev)) {
        return FERRULE_ERR_HANDLE;
    }
    ferrule_platform_guard(dev);
    if (!is_handle(dev)) {
        ferrule_platform_unguard(dev);
        return FERRULE_ERR_HANDLE;
    }
    return FERRULE_OK;
}

void ferrule_stop_begin(struct ferrule_stop *stop, const uint32_t *deadline_us)
{
    stop->requested = false;
    stop->waiting = NULL;
    ferrule_stop_set_deadline(stop, deadline_us);
}

void ferrule_stop_set_deadline(struct ferrule_stop *stop, const uint32_t *deadline_us)
{
    stop->has_deadline = deadline_us != NULL;
    stop->deadline_us = deadline_us != NULL ? *deadline_us : 0u;
}

/* 0 if the deadline has passed. */
static uint32_t time_left(const struct ferrule_stop *stop)
{
    const uint32_t left = stop->deadline_us - ferrule_platform_now_us();

    return left > INT32_MAX ? 0u : left; /* the clock wraps */
}

int32_t ferrule_stop_status(const struct ferrule_stop *stop)
{
    if (stop == NULL) {
        return FERRULE_OK;
    }
    if (stop->requested) {
        return FERRULE_ERR_CANCELLED;
    }
    return stop->has_deadline && time_left(stop) == 0u ? FERRULE_ERR_TIMEOUT : FERRULE_OK;
}

uint32_t ferrule_stop_limit(const struct ferrule_stop *stop, uint32_t timeout_us)
{
    uint32_t left;

    if (stop == NULL || !stop->has_deadline) {
        return timeout_us;
    }
    left = time_left(stop);
    return left < timeout_us ? left : timeout_us;
}

static int32_t take(ferrule_device_t *dev)
{
    return ferrule_turn_take(dev, FERRULE_WAIT_DEFAULT, NULL, NULL);
}

/* Called with the guard, which is released meanwhile. The handle has no owner afterwards, even if
 * unlocking fails. */
static int32_t give(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status;

    core->is_open = false;
    core->owner = NULL;
    core->stop = NULL;
    ferrule_platform_unguard(dev);
    status = ferrule_platform_unlock(dev);
    ferrule_platform_guard(dev);
    core->users--;
    return status;
}

static int32_t first_of(int32_t first, int32_t second)
{
    return first != FERRULE_OK ? first : second;
}

/* Called with the lock, without the guard; the device is fine, or was cut. Nobody has given it work
 * yet, so one that works has outlived a restart of the core, or ignores its reset. */
static int32_t power_up(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = ferrule_platform_power(dev, true);
    bool is_on = true;

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->activate != NULL) {
        status = core->driver->activate(core->context);
    }
    if (status == FERRULE_OK) {
        core->health = (uint32_t)FERRULE_DEVICE_FINE;
        if (!ferrule_health_rests(core)) {
            (void)ferrule_health_stop(dev); /* which sets the health */
        }
        is_on = core->health != (uint32_t)FERRULE_DEVICE_CUT;
        status = core->health == (uint32_t)FERRULE_DEVICE_FINE ? FERRULE_OK : FERRULE_ERR_DEVICE;
    }
    if (status != FERRULE_OK && is_on) {
        (void)ferrule_platform_power(dev, false); /* the driver's error is returned */
    }
    return status;
}

/* Called with the lock, without the guard. A device that was cut is off already. */
static int32_t power_down(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        status = ferrule_health_stop(dev);
    }
    if (core->driver->deactivate != NULL && core->health != (uint32_t)FERRULE_DEVICE_CUT) {
        status = first_of(status, core->driver->deactivate(core->context));
    }
    return first_of(status, ferrule_health_switch_off(dev));
}

/* Called with the lock, without the guard: makes a device that is not fine usable again. */
static int32_t recover(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        status = ferrule_health_stop(dev);
    }
    if (status == FERRULE_OK && core->health == (uint32_t)FERRULE_DEVICE_CUT) {
        status = power_up(dev);
    }
    return status;
}

/* Called with the lock, without the guard. */
static int32_t check(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = recover(dev);

    if (status == FERRULE_OK) {
        status = ferrule_platform_ready(dev);
    }
    if (status == FERRULE_OK && core->driver->check != NULL) {
        status = core->driver->check(core->context);
    }
    return status;
}

/* Called with the guard; FERRULE_OK if this thread has the device open. */
static int32_t is_mine(const struct ferrule_device_core *core)
{
    if (!core->is_open) {
        return FERRULE_ERR_STATE;
    }
    return core->owner == ferrule_platform_thread() ? FERRULE_OK : FERRULE_ERR_OWNER;
}

int32_t ferrule_device_init(ferrule_device_t *dev)
{
    static const struct ferrule_device_core cleared = {0};
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status;

    if (dev == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (ferrule_platform_in_interrupt()) {
        return FERRULE_ERR_INTERRUPT;
    }
    if (is_handle(dev)) {
        return FERRULE_ERR_STATE;
    }
    status = ferrule_platform_init(dev);
    *core = cleared;
    if (status == FERRULE_OK) {
        core->self = core;
        core->state = (uint32_t)FERRULE_DEVICE_INITIALISED;
    }
    return status;
}

int32_t ferrule_device_may_bind(const ferrule_device_t *dev)
{
    if (dev == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (ferrule_platform_in_interrupt()) {
        return FERRULE_ERR_INTERRUPT;
    }
    if (!is_handle(dev)) {
        return FERRULE_ERR_HANDLE;
    }
    return ((const struct ferrule_device_core *)dev)->state == (uint32_t)FERRULE_DEVICE_INITIALISED
               ? FERRULE_OK
               : FERRULE_ERR_STATE;
}

int32_t ferrule_device_bind_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                   void *context)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = ferrule_device_may_bind(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (driver == NULL || driver->timeout_us > FERRULE_WAIT_MOST) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (!ferrule_health_is_stoppable(core, driver)) {
        return FERRULE_ERR_UNSTOPPABLE;
    }
    ferrule_platform_guard(dev);
    core->driver = driver;
    core->context = context;
    core->timeout_us = 0;
    core->state = (uint32_t)FERRULE_DEVICE_BOUND;
    ferrule_platform_unguard(dev);
    return FERRULE_OK;
}

const struct ferrule_driver ferrule_no_driver = {.name = "none", .is_passive = true};

/* Called with the guard. */
static int32_t set_driver(struct ferrule_device_core *core, const struct ferrule_driver *driver,
                          void *context, uintptr_t *base)
{
    if (core->state != (uint32_t)FERRULE_DEVICE_BOUND) {
        return FERRULE_ERR_STATE;
    }
    if (core->driver == driver) {
        return FERRULE_OK;
    }
    if (driver == NULL || core->driver != &ferrule_no_driver) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (driver->timeout_us > FERRULE_WAIT_MOST) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (base != NULL && core->context == NULL && *base == 0) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (core->users > 0 || core->activations > 0) {
        return FERRULE_ERR_STATE;
    }
    if (!ferrule_health_is_stoppable(core, driver)) {
        return FERRULE_ERR_UNSTOPPABLE;
    }
    if (base != NULL && core->context != NULL) {
        *base = (uintptr_t)core->context;
    }
    core->driver = driver;
    core->context = context;
    return FERRULE_OK;
}

int32_t ferrule_device_set_driver(ferrule_device_t *dev, const struct ferrule_driver *driver,
                                  void *context, uintptr_t *base)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = set_driver(ferrule_device_core_of(dev), driver, context, base);
        ferrule_platform_unguard(dev);
    }
    return status;
}

/* Called with the guard. */
static int32_t count_up(struct ferrule_device_core *core)
{
    if (core->activations == UINT32_MAX) {
        return FERRULE_ERR_STATE;
    }
    core->activations++;
    return FERRULE_OK;
}

/* Called with the guard, which is released while power is switched on. */
static int32_t activate(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status;

    if (core->state != (uint32_t)FERRULE_DEVICE_BOUND) {
        return FERRULE_ERR_STATE;
    }
    if (core->activations > 0) {
        return count_up(core);
    }
    status = take(dev);
    if (status != FERRULE_OK) {
        return status;
    }
    if (core->activations == 0) { /* no other thread activated it while this one waited */
        ferrule_platform_unguard(dev);
        status = ferrule_health_find(dev);
        if (status == FERRULE_OK) {
            status = power_up(dev);
        }
        ferrule_platform_guard(dev);
    }
    if (status == FERRULE_OK) {
        status = count_up(core);
    }
    return first_of(status, give(dev));
}

int32_t ferrule_device_activate(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = activate(dev);
        ferrule_platform_unguard(dev);
    }
    return status;
}

/* Called with the guard and the lock; the guard is released while power is switched off. */
static int32_t count_down(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->activations == 0) { /* another thread deactivated it while this one waited */
        return FERRULE_ERR_STATE;
    }
    core->activations--; /* first, so that a concurrent activation waits for the lock */
    if (core->activations == 0) {
        ferrule_platform_unguard(dev);
        status = power_down(dev);
        ferrule_platform_guard(dev);
    }
    return status;
}

/* Called with the guard. */
static int32_t deactivate(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status;

    if (core->activations == 0) {
        return FERRULE_ERR_STATE;
    }
    if (core->activations > 1) {
        core->activations--;
        return FERRULE_OK;
    }
    if (core->is_open) {
        return FERRULE_ERR_BUSY;
    }
    status = take(dev);
    if (status != FERRULE_OK) {
        return status;
    }
    status = count_down(dev);
    return first_of(status, give(dev));
}

int32_t ferrule_device_deactivate(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = deactivate(dev);
        ferrule_platform_unguard(dev);
    }
    return status;
}

/* Called with the guard, which is released while waiting for the lock and checking the device. */
static int32_t open_device(ferrule_device_t *dev, uint32_t timeout_us, struct ferrule_stop *stop,
                           struct ferrule_place *kept)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status;

    if (core->activations == 0) {
        return FERRULE_ERR_STATE;
    }
    status = ferrule_turn_take(dev, timeout_us, stop, kept);
    if (status != FERRULE_OK) {
        return status;
    }
    if (core->activations == 0) { /* deactivated while this thread waited */
        (void)give(dev);          /* FERRULE_ERR_STATE takes precedence */
        return FERRULE_ERR_STATE;
    }
    ferrule_platform_unguard(dev);
    status = check(dev);
    ferrule_platform_guard(dev);
    if (status != FERRULE_OK) {
        (void)give(dev); /* the error of the check is returned */
        return status;
    }
    core->is_open = true;
    core->stop = stop;
    return FERRULE_OK;
}

int32_t ferrule_device_open_in_turn(ferrule_device_t *dev, uint32_t timeout_us,
                                    struct ferrule_stop *stop, struct ferrule_place *kept)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = open_device(dev, timeout_us, stop, kept);
        ferrule_platform_unguard(dev);
    }
    return status;
}

void ferrule_device_leave(ferrule_device_t *dev, struct ferrule_place *kept)
{
    if (kept->waits) {
        ferrule_platform_guard(dev);
        ferrule_turn_leave(ferrule_device_core_of(dev), kept);
        ferrule_device_core_of(dev)->users--;
        ferrule_platform_unguard(dev);
    }
}

uint32_t ferrule_device_users(ferrule_device_t *dev, uint32_t *turns)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    uint32_t users;

    ferrule_platform_guard(dev);
    *turns += core->turns;
    users = core->users;
    ferrule_platform_unguard(dev);
    return users;
}

int32_t ferrule_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                struct ferrule_stop *stop)
{
    return ferrule_device_open_in_turn(dev, timeout_us, stop, NULL);
}

int32_t ferrule_device_open(ferrule_device_t *dev)
{
    return ferrule_device_open_for(dev, FERRULE_WAIT_DEFAULT, NULL);
}

/* Called with the lock, without the guard. */
static int32_t stop_all(ferrule_device_t *dev)
{
    ferrule_device_core_of(dev)->in_flight = 0;
    return ferrule_health_stop(dev);
}

/* Called with the lock, without the guard. A lost device is left to those who need it. */
static int32_t leave_at_rest(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);

    if (core->health != (uint32_t)FERRULE_DEVICE_FINE ||
        (core->in_flight == 0 && ferrule_health_rests(core))) {
        return FERRULE_OK;
    }
    return stop_all(dev);
}

int32_t ferrule_device_close(ferrule_device_t *dev)
{
    int32_t status = enter(dev);
    int32_t aborted;

    if (status != FERRULE_OK) {
        return status;
    }
    status = is_mine(ferrule_device_core_of(dev));
    if (status == FERRULE_OK) {
        ferrule_platform_unguard(dev);
        aborted = leave_at_rest(dev);
        ferrule_platform_guard(dev);
        status = first_of(aborted, give(dev));
    }
    ferrule_platform_unguard(dev);
    return status;
}

int32_t ferrule_device_destroy(ferrule_device_t *dev)
{
    static const struct ferrule_device_core cleared = {0};
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = enter(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->activations > 0 || core->users > 0) {
        ferrule_platform_unguard(dev);
        return FERRULE_ERR_BUSY;
    }
    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        ferrule_platform_unguard(dev);
        return FERRULE_ERR_DEVICE;
    }
    *core = cleared;
    return ferrule_platform_destroy(dev);
}

/* FERRULE_OK if this thread has the device open; the guard is released on return. */
static int32_t require_open(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = is_mine(ferrule_device_core_of(dev));
        ferrule_platform_unguard(dev);
    }
    return status;
}

/* FERRULE_OK if, besides, the device can be used: it was neither cut nor lost since. */
static int32_t require_fine(ferrule_device_t *dev)
{
    const int32_t status = require_open(dev);

    return status == FERRULE_OK &&
                   ferrule_device_core_of(dev)->health != (uint32_t)FERRULE_DEVICE_FINE
               ? FERRULE_ERR_DEVICE
               : status;
}

int32_t ferrule_device_abort(ferrule_device_t *dev)
{
    int32_t status = require_open(dev);

    return status != FERRULE_OK ? status : stop_all(dev);
}

uint32_t ferrule_device_in_flight(const ferrule_device_t *dev)
{
    return ((const struct ferrule_device_core *)dev)->in_flight;
}

int32_t ferrule_device_recover(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = enter(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        status = take(dev);
        if (status == FERRULE_OK) {
            ferrule_platform_unguard(dev);
            status = core->activations > 0 ? recover(dev) : ferrule_health_find(dev);
            ferrule_platform_guard(dev);
            status = first_of(status, give(dev));
        }
    }
    ferrule_platform_unguard(dev);
    return status;
}

bool ferrule_device_is_lost(const ferrule_device_t *dev)
{
    return dev != NULL && is_handle(dev) &&
           ((const struct ferrule_device_core *)dev)->health == (uint32_t)FERRULE_DEVICE_LOST;
}

void ferrule_device_notify(ferrule_device_t *dev)
{
    if (dev != NULL && is_handle(dev)) {
        ferrule_platform_notify(dev);
    }
}

void ferrule_stop_request(struct ferrule_stop *stop)
{
    /* in this order on other cores, too, as the run writes `waiting` before it reads `requested` */
    stop->requested = true;
    ferrule_stop_fence();
    ferrule_device_notify(stop->waiting);
}

static int32_t check_range(const struct ferrule_driver *driver, uint32_t device_offset,
                           const void *memory, size_t bytes)
{
    if (memory == NULL && bytes > 0) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (device_offset > driver->memory_bytes || bytes > driver->memory_bytes - device_offset) {
        return FERRULE_ERR_ARGUMENT;
    }
    return FERRULE_OK;
}

int32_t ferrule_device_copy_to(ferrule_device_t *dev, uint32_t device_offset, const void *source,
                               size_t bytes)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = require_fine(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->copy_to == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    status = check_range(core->driver, device_offset, source, bytes);
    if (status != FERRULE_OK || bytes == 0) {
        return status;
    }
    return core->driver->copy_to(core->context, device_offset, source, bytes);
}

int32_t ferrule_device_copy_from(ferrule_device_t *dev, void *destination, uint32_t device_offset,
                                 size_t bytes)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = require_fine(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->copy_from == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    status = check_range(core->driver, device_offset, destination, bytes);
    if (status != FERRULE_OK || bytes == 0) {
        return status;
    }
    return core->driver->copy_from(core->context, destination, device_offset, bytes);
}

int32_t ferrule_device_context(ferrule_device_t *dev, const struct ferrule_driver *driver,
                               void **context)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = require_fine(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (context == NULL || core->driver != driver) {
        return FERRULE_ERR_ARGUMENT;
    }
    *context = core->context;
    return FERRULE_OK;
}
