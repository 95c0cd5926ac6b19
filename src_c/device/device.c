/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/device.h"

#include "ferrule/platform.h"

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

/* Called with the guard, which is released while waiting for the lock. */
static int32_t take(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status;

    if (core->owner == ferrule_platform_thread()) {
        return FERRULE_ERR_STATE;
    }
    core->users++; /* makes destroy fail */
    ferrule_platform_unguard(dev);
    status = ferrule_platform_lock(dev);
    ferrule_platform_guard(dev);
    if (status != FERRULE_OK) {
        core->users--;
        return status;
    }
    core->owner = ferrule_platform_thread();
    return FERRULE_OK;
}

/* Called with the guard, which is released meanwhile. The handle has no owner afterwards, even if
 * unlocking fails. */
static int32_t give(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status;

    core->is_open = false;
    core->owner = NULL;
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

/* Called with the lock, without the guard. */
static int32_t power_down(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = FERRULE_OK;

    if (core->driver->deactivate != NULL) {
        status = core->driver->deactivate(core->context);
    }
    return first_of(status, ferrule_platform_power(dev, false));
}

/* Called with the lock, without the guard. */
static int32_t check(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = core_of(dev);
    int32_t status = ferrule_platform_ready(dev);

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
    if (driver == NULL) {
        return FERRULE_ERR_ARGUMENT;
    }
    ferrule_platform_guard(dev);
    core->driver = driver;
    core->context = context;
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
    if (base != NULL && core->context == NULL && *base == 0) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (core->activations > 0 || core->users > 0) {
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
static int32_t open_device(ferrule_device_t *dev)
{
    struct ferrule_device_core *core = core_of(dev);
    int32_t status;

    if (core->activations == 0) {
        return FERRULE_ERR_STATE;
    }
    status = take(dev);
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
    return FERRULE_OK;
}

int32_t ferrule_device_open(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status == FERRULE_OK) {
        status = open_device(dev);
        ferrule_platform_unguard(dev);
    }
    return status;
}

int32_t ferrule_device_close(ferrule_device_t *dev)
{
    int32_t status = enter(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    status = is_mine(core_of(dev));
    if (status == FERRULE_OK) {
        status = give(dev);
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
