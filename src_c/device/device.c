/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/device.h"

#include "ferrule/platform.h"

/* How long a run that can be cancelled waits for a lock before it looks whether it was. */
#define LOCK_SLICE_US 10000u
/* How often a thread gives the lock back to one that has waited longer, before it takes it all the
 * same: the other thread does not run, such as one that was suspended. */
#define PATIENCE 32u

/* Only the first member of the platform's struct is known here. */
static struct ferrule_device_core *core_of(ferrule_device_t *dev)
{
    return (struct ferrule_device_core *)dev;
}

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
    if (__atomic_load_n(&stop->requested, __ATOMIC_SEQ_CST)) {
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

/* Called with the guard. */
static void join(struct ferrule_device_core *core, struct ferrule_place *place)
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
static void leave(struct ferrule_device_core *core, struct ferrule_place *place)
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
static bool has_turn(const struct ferrule_device_core *core, const struct ferrule_place *place)
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
static uint32_t slice_of(uint32_t left, const struct ferrule_stop *stop)
{
    const uint32_t limit = ferrule_stop_limit(stop, left);

    return stop != NULL && limit > LOCK_SLICE_US ? LOCK_SLICE_US : limit;
}

/* Called with the guard and the lock: gives it back, and lets the others run. */
static int32_t give_way(ferrule_device_t *dev)
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
static int32_t wait_for_turn(ferrule_device_t *dev, struct ferrule_place *place, uint32_t whole,
                             const struct ferrule_stop *stop)
{
    const uint32_t begin = whole == 0u ? 0u : ferrule_platform_now_us();
    uint32_t passed = 0;
    uint32_t patience = PATIENCE;

    for (;;) {
        const uint32_t slice = slice_of(whole - passed, stop);
        int32_t status = ferrule_stop_status(stop);
        bool ends = status != FERRULE_OK || stop == NULL;

        if (status == FERRULE_OK) {
            status = ferrule_platform_lock(dev, slice);
        }
        passed = whole == 0u ? 0u : ferrule_platform_now_us() - begin;
        ferrule_platform_guard(dev);
        if (status == FERRULE_OK) {
            if (whole == 0u || patience == 0u || has_turn(core_of(dev), place)) {
                return FERRULE_OK;
            }
            patience--;
            ends = false;
            status = give_way(dev);
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
static int32_t take_for(ferrule_device_t *dev, uint32_t timeout_us, const struct ferrule_stop *stop,
                        struct ferrule_place *kept)
{
    const uint32_t whole =
        timeout_us == FERRULE_WAIT_DEFAULT ? ferrule_platform_open_timeout_us() : timeout_us;
    struct ferrule_device_core *core = core_of(dev);
    struct ferrule_place own = {0};
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
        join(core, place);
    }
    status = FERRULE_ERR_BUSY;
    if (whole > 0u || has_turn(core, place)) { /* a try does not overtake */
        ferrule_platform_unguard(dev);
        status = wait_for_turn(dev, place, whole, stop);
    }
    if (status == FERRULE_ERR_TIMEOUT && kept != NULL) {
        return status;
    }
    leave(core, place);
    if (status != FERRULE_OK) {
        core->users--;
        return status;
    }
    core->turns++;
    core->owner = ferrule_platform_thread();
    return FERRULE_OK;
}

static int32_t take(ferrule_device_t *dev)
{
    return take_for(dev, FERRULE_WAIT_DEFAULT, NULL, NULL);
}

/* Called with the guard, which is released meanwhile. The handle has no owner afterwards, even if
 * unlocking fails. */
static int32_t give(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
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

/* Called with the lock, without the guard. */
static int32_t power_up(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = ferrule_platform_power(dev, true);

    if (status != FERRULE_OK || core->driver->activate == NULL) {
        return status;
    }
    status = core->driver->activate(core->context);
    if (status != FERRULE_OK) {
        (void)ferrule_platform_power(dev, false); /* the driver's error is returned */
    }
    return status;
}

/* Called with the lock, without the guard. A device whose power was cut is off already, and one
 * that was lost is found again only if all of this succeeds. */
static int32_t power_down(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->driver->deactivate != NULL && core->health != (uint32_t)FERRULE_DEVICE_CUT) {
        status = core->driver->deactivate(core->context);
    }
    status = first_of(status, ferrule_platform_power(dev, false));
    if (status == FERRULE_OK || core->health == (uint32_t)FERRULE_DEVICE_CUT) {
        core->health = (uint32_t)FERRULE_DEVICE_FINE;
    }
    return status;
}

/* Called with the lock, without the guard. */
static int32_t stop_by_force(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);

    core->health = (uint32_t)FERRULE_DEVICE_FINE;
    if (core->driver->abort != NULL && core->driver->abort(core->context) == FERRULE_OK) {
        return FERRULE_OK;
    }
    if (ferrule_platform_cut(dev) == FERRULE_OK) {
        core->health = (uint32_t)FERRULE_DEVICE_CUT;
        return FERRULE_OK;
    }
    core->health = (uint32_t)FERRULE_DEVICE_LOST;
    return FERRULE_ERR_DEVICE;
}

/* Called with the lock, without the guard: makes a device that is not fine usable again. */
static int32_t recover(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        status = stop_by_force(dev);
    }
    if (status == FERRULE_OK && core->health == (uint32_t)FERRULE_DEVICE_CUT) {
        status = power_up(dev);
        if (status == FERRULE_OK) {
            core->health = (uint32_t)FERRULE_DEVICE_FINE;
        }
    }
    return status;
}

/* Called with the lock, without the guard. */
static int32_t check(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = core_of(dev);
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
    struct ferrule_device_core *core = core_of(dev);
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
    struct ferrule_device_core *core = core_of(dev);
    int32_t status = ferrule_device_may_bind(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (driver == NULL || driver->timeout_us > FERRULE_WAIT_MOST) {
        return FERRULE_ERR_ARGUMENT;
    }
    ferrule_platform_guard(dev);
    core->driver = driver;
    core->context = context;
    core->timeout_us = 0;
    core->state = (uint32_t)FERRULE_DEVICE_BOUND;
    ferrule_platform_unguard(dev);
    return FERRULE_OK;
}

const struct ferrule_driver ferrule_no_driver = {.name = "none"};

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
        status = set_driver(core_of(dev), driver, context, base);
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
    struct ferrule_device_core *core = core_of(dev);
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
        status = power_up(dev);
        ferrule_platform_guard(dev);
        if (status == FERRULE_OK) {
            core->health = (uint32_t)FERRULE_DEVICE_FINE; /* the driver's activate has reset it */
        }
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
    struct ferrule_device_core *core = core_of(dev);
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
    struct ferrule_device_core *core = core_of(dev);
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
    struct ferrule_device_core *core = core_of(dev);
    int32_t status;

    if (core->activations == 0) {
        return FERRULE_ERR_STATE;
    }
    status = take_for(dev, timeout_us, stop, kept);
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
        leave(core_of(dev), kept);
        core_of(dev)->users--;
        ferrule_platform_unguard(dev);
    }
}

uint32_t ferrule_device_users(ferrule_device_t *dev, uint32_t *turns)
{
    const struct ferrule_device_core *core = core_of(dev);
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
static int32_t abort_commands(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);

    if (core->in_flight == 0) {
        return FERRULE_OK;
    }
    core->in_flight = 0;
    return stop_by_force(dev);
}

int32_t ferrule_device_close(ferrule_device_t *dev)
{
    int32_t status = enter(dev);
    int32_t aborted;

    if (status != FERRULE_OK) {
        return status;
    }
    status = is_mine(core_of(dev));
    if (status == FERRULE_OK) {
        ferrule_platform_unguard(dev);
        aborted = abort_commands(dev);
        ferrule_platform_guard(dev);
        status = first_of(aborted, give(dev));
    }
    ferrule_platform_unguard(dev);
    return status;
}

int32_t ferrule_device_destroy(ferrule_device_t *dev)
{
    static const struct ferrule_device_core cleared = {0};
    struct ferrule_device_core *core = core_of(dev);
    int32_t status = enter(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->activations > 0 || core->users > 0) {
        ferrule_platform_unguard(dev);
        return FERRULE_ERR_BUSY;
    }
    *core = cleared;
    return ferrule_platform_destroy(dev);
}

/* FERRULE_OK if this thread has the device open; the guard is released on return. */
static int32_t require_open(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = is_mine(core_of(dev));
        ferrule_platform_unguard(dev);
    }
    return status;
}

int32_t ferrule_device_abort(ferrule_device_t *dev)
{
    int32_t status = require_open(dev);

    return status != FERRULE_OK ? status : abort_commands(dev);
}

uint32_t ferrule_device_in_flight(const ferrule_device_t *dev)
{
    return ((const struct ferrule_device_core *)dev)->in_flight;
}

int32_t ferrule_device_recover(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status = enter(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->health == (uint32_t)FERRULE_DEVICE_LOST) {
        status = take(dev);
        if (status == FERRULE_OK) {
            ferrule_platform_unguard(dev);
            status = core->activations > 0 ? recover(dev) : power_up(dev);
            if (status == FERRULE_OK && core->activations == 0) {
                status = power_down(dev);
            }
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
    __atomic_store_n(&stop->requested, true, __ATOMIC_SEQ_CST);
    ferrule_device_notify(__atomic_load_n(&stop->waiting, __ATOMIC_SEQ_CST));
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
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = require_open(dev);

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
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = require_open(dev);

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
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = require_open(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (context == NULL || core->driver != driver) {
        return FERRULE_ERR_ARGUMENT;
    }
    *context = core->context;
    return FERRULE_OK;
}
