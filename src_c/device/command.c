/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of devices that work beside the core, and the wait for them. */
#include "ferrule/device.h"
#include "ferrule/platform.h"

/* FERRULE_OK if this thread has the device open, and it can be used. */
static int32_t require_open(ferrule_device_t *dev)
{
    void *context = NULL;

    /* the driver is compared only after the checks of the handle */
    return ferrule_device_context(dev, dev == NULL ? NULL : ferrule_device_core_of(dev)->driver,
                                  &context);
}

/* FERRULE_OK if the handle is bound, whoever uses it. */
static int32_t require_bound(const ferrule_device_t *dev)
{
    const int32_t status = ferrule_device_may_bind(dev);

    if (status == FERRULE_ERR_STATE) {
        return FERRULE_OK;
    }
    return status == FERRULE_OK ? FERRULE_ERR_STATE : status; /* not bound, or no handle */
}

int32_t ferrule_device_set_timeout(ferrule_device_t *dev, uint32_t timeout_us)
{
    const int32_t status = require_bound(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (timeout_us > FERRULE_WAIT_MOST) {
        return FERRULE_ERR_ARGUMENT;
    }
    ferrule_device_core_of(dev)->timeout_us = timeout_us;
    return FERRULE_OK;
}

int32_t ferrule_device_statistic(ferrule_device_t *dev, uint32_t index,
                                 struct ferrule_statistic *found)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    const int32_t status = require_bound(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->statistics == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    return found != NULL && core->driver->statistics(core->context, index, found)
               ? FERRULE_OK
               : FERRULE_ERR_ARGUMENT;
}

static uint32_t depth_of(const struct ferrule_driver *driver)
{
    return driver->depth == 0u ? 1u : driver->depth;
}

static int32_t has_room(const struct ferrule_device_core *core)
{
    return core->in_flight < depth_of(core->driver) ? FERRULE_OK : FERRULE_ERR_BUSY;
}

/* Counts the command if it was begun. */
static int32_t begun(struct ferrule_device_core *core, int32_t status)
{
    if (status == FERRULE_OK) {
        core->in_flight++;
    }
    return status;
}

int32_t ferrule_device_submit(ferrule_device_t *dev, const struct ferrule_driver *driver,
                              const void *command)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    void *context = NULL;
    int32_t status = ferrule_device_context(dev, driver, &context);

    if (status != FERRULE_OK) {
        return status;
    }
    if (driver->submit == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    status = has_room(core);
    return status != FERRULE_OK ? status : begun(core, driver->submit(context, command));
}

/* Checks a copy; FERRULE_OK also for zero bytes. */
static int32_t check_copy(ferrule_device_t *dev, uint32_t device_offset, const void *memory,
                          size_t bytes)
{
    const struct ferrule_driver *driver;
    int32_t status = require_open(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    driver = ferrule_device_core_of(dev)->driver;
    if ((memory == NULL && bytes > 0u) || device_offset > driver->memory_bytes ||
        bytes > driver->memory_bytes - device_offset) {
        return FERRULE_ERR_ARGUMENT;
    }
    return has_room(ferrule_device_core_of(dev));
}

int32_t ferrule_device_submit_copy_to(ferrule_device_t *dev, uint32_t device_offset,
                                      const void *source, size_t bytes)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = check_copy(dev, device_offset, source, bytes);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->submit_copy_to == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    return begun(core, core->driver->submit_copy_to(core->context, device_offset, source, bytes));
}

int32_t ferrule_device_submit_copy_from(ferrule_device_t *dev, void *destination,
                                        uint32_t device_offset, size_t bytes)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = check_copy(dev, device_offset, destination, bytes);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->driver->submit_copy_from == NULL) {
        return FERRULE_ERR_UNSUPPORTED;
    }
    return begun(core,
                 core->driver->submit_copy_from(core->context, destination, device_offset, bytes));
}

static uint32_t timeout_of(const struct ferrule_device_core *core, uint32_t timeout_us)
{
    if (timeout_us != FERRULE_WAIT_DEFAULT) {
        return timeout_us;
    }
    if (core->timeout_us != 0u) {
        return core->timeout_us;
    }
    return core->driver->timeout_us != 0u ? core->driver->timeout_us : FERRULE_DEVICE_TIMEOUT_US;
}

/* A longer time cannot be told from one that has passed, when the clock wraps. */
static bool is_limit(uint32_t timeout_us)
{
    return timeout_us <= FERRULE_WAIT_MOST || timeout_us == FERRULE_WAIT_DEFAULT;
}

static uint32_t least_of(uint32_t first, uint32_t second)
{
    return first < second ? first : second;
}

/* Waits once. FERRULE_OK if the caller must look again, also after the time. */
static int32_t wait_once(ferrule_device_t *dev, uint32_t left)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    const uint32_t poll = core->driver->poll_us == NULL ? 0u : core->driver->poll_us(core->context);
    const uint32_t limit = ferrule_stop_limit(core->stop, least_of(left, poll));
    int32_t status = ferrule_stop_status(core->stop);

    if (status != FERRULE_OK || limit == 0u) {
        return status;
    }
    status = ferrule_platform_wait(dev, limit);
    return status == FERRULE_ERR_TIMEOUT ? FERRULE_OK : status;
}

/* A wait may end early, by a late interrupt of an earlier command, so it is repeated. A thread that
 * could not run for long looks at the device once more before it gives up. */
static int32_t wait_until(ferrule_device_t *dev, bool (*is_over)(void *context),
                          uint32_t timeout_us)
{
    const struct ferrule_device_core *core = ferrule_device_core_of(dev);
    const uint32_t begin = ferrule_platform_now_us();

    for (;;) {
        const uint32_t passed = ferrule_platform_now_us() - begin;
        int32_t status;

        if (is_over(core->context)) {
            return FERRULE_OK;
        }
        if (passed >= timeout_us) {
            return FERRULE_ERR_TIMEOUT;
        }
        status = wait_once(dev, timeout_us - passed);
        if (status != FERRULE_OK) {
            return status;
        }
    }
}

/* A cancellation wakes the thread meanwhile. */
static int32_t wait_for(ferrule_device_t *dev, bool (*is_over)(void *context), uint32_t timeout_us)
{
    struct ferrule_stop *stop = ferrule_device_core_of(dev)->stop;
    int32_t status;

    if (stop != NULL) {
        stop->waiting = dev;
        ferrule_stop_fence(); /* see ferrule_stop_request() */
    }
    status = wait_until(dev, is_over, timeout_of(ferrule_device_core_of(dev), timeout_us));
    if (stop != NULL) {
        stop->waiting = NULL;
    }
    return status;
}

/* After an error: the device must make no access to memory any more. */
static int32_t stop_after(ferrule_device_t *dev, int32_t status)
{
    const int32_t stopped = ferrule_device_abort(dev);

    return stopped != FERRULE_OK ? stopped : status;
}

int32_t ferrule_device_wait(ferrule_device_t *dev, bool (*is_over)(void *context),
                            uint32_t timeout_us)
{
    int32_t status = require_open(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (is_over == NULL || !is_limit(timeout_us)) {
        return FERRULE_ERR_ARGUMENT;
    }
    status = wait_for(dev, is_over, timeout_us);
    return status == FERRULE_OK ? FERRULE_OK : stop_after(dev, status);
}

int32_t ferrule_device_finish(ferrule_device_t *dev, uint32_t timeout_us)
{
    struct ferrule_device_core *core = ferrule_device_core_of(dev);
    int32_t status = require_open(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    if (core->in_flight == 0u || core->driver->finish == NULL) {
        return FERRULE_ERR_STATE;
    }
    if (!is_limit(timeout_us)) {
        return FERRULE_ERR_ARGUMENT;
    }
    if (core->driver->is_over != NULL) {
        status = wait_for(dev, core->driver->is_over, timeout_us);
    }
    if (status == FERRULE_OK) {
        status = core->driver->finish(core->context);
    }
    if (status == FERRULE_OK) {
        core->in_flight--;
        return FERRULE_OK;
    }
    return stop_after(dev, status);
}
