/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_platform.h"

#include <string.h>

struct fake fake;
static const uint8_t threads[8];

static int32_t happens(enum fake_event event)
{
    if (event == FAKE_STOPPED) {
        fake.stopped_looks++;
    } else if (event != FAKE_GUARD) {
        fake.trace[fake.traced] = (uint32_t)event;
        fake.traced = (fake.traced + 1) % 256;
    }
    if (fake.hook != NULL) {
        fake.hook((uint32_t)event);
    }
    return fake.results[event];
}

static void expect(bool fine)
{
    if (!fine) {
        fake.violations++;
    }
}

static bool has_lock_only(const ferrule_device_t *dev)
{
    return !dev->guarded && dev->locked_by == ferrule_platform_thread();
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.thread = 1;
    fake.lock_refusal = FERRULE_ERR_TIMEOUT;
    fake.open_timeout_us = 1000;
}

size_t fake_device_bytes(void)
{
    return sizeof(struct ferrule_device);
}

int32_t fake_bind(ferrule_device_t *dev, const struct ferrule_driver *driver, void *context)
{
    int32_t status = ferrule_device_may_bind(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    dev->core.can_cut = !fake.cannot_cut;
    return ferrule_device_bind_driver(dev, driver, context);
}

void fake_set_state(ferrule_device_t *dev, uint32_t state)
{
    dev->core.state = state;
}

void fake_set_activations(ferrule_device_t *dev, uint32_t activations)
{
    dev->core.activations = activations;
}

uint32_t fake_activations(const ferrule_device_t *dev)
{
    return dev->core.activations;
}

uint32_t fake_users(const ferrule_device_t *dev)
{
    return dev->core.users;
}

uint32_t fake_opener(const ferrule_device_t *dev)
{
    return dev->core.is_open ? (uint32_t)((const uint8_t *)dev->core.owner - threads) : 0;
}

bool ferrule_platform_in_interrupt(void)
{
    return fake.in_interrupt;
}

const void *ferrule_platform_thread(void)
{
    return &threads[fake.thread];
}

int32_t ferrule_platform_priority(void)
{
    return fake.priorities[fake.thread];
}

void ferrule_platform_yield(void)
{
    (void)happens(FAKE_YIELD);
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    int32_t status = happens(FAKE_INIT);

    memset(dev, 0xa5, sizeof *dev);
    dev->notified = false;
    dev->locked_by = NULL;
    dev->guarded = false;
    return status;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    int32_t status = happens(FAKE_DESTROY);

    expect(dev->guarded && dev->locked_by == NULL);
    dev->guarded = false;
    return status;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    (void)happens(FAKE_GUARD);
    expect(!dev->guarded);
    dev->guarded = true;
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    expect(dev->guarded);
    dev->guarded = false;
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return fake.open_timeout_us;
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    int32_t status = happens(FAKE_LOCK);

    expect(!dev->guarded && dev->locked_by != ferrule_platform_thread());
    fake.lock_timeout_us = timeout_us;
    if (status != FERRULE_OK) {
        return status;
    }
    if (dev->locked_by != NULL) {
        return fake.lock_refusal;
    }
    dev->locked_by = ferrule_platform_thread();
    return FERRULE_OK;
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    int32_t status = happens(FAKE_UNLOCK);

    expect(has_lock_only(dev));
    dev->locked_by = NULL; /* unlocked even if the call reports a failure */
    return status;
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    int32_t status = happens(FAKE_READY);

    expect(has_lock_only(dev));
    return status;
}

int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    int32_t status = happens(FAKE_CUT);

    expect(has_lock_only(dev));
    return status;
}

uint32_t ferrule_platform_now_us(void)
{
    return fake.now_us++;
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    int32_t status = happens(FAKE_WAIT);

    expect(has_lock_only(dev) && timeout_us > 0);
    if (status != FERRULE_OK || dev->notified) {
        dev->notified = false;
        return status;
    }
    fake.now_us += timeout_us;
    return FERRULE_ERR_TIMEOUT;
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    dev->notified = true;
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    int32_t status = happens(on ? FAKE_POWER_ON : FAKE_POWER_OFF);

    expect(has_lock_only(dev));
    return status;
}

static int32_t driver_call(void *context, enum fake_event event)
{
    const struct fake_context *own = context;
    int32_t status = happens(event);

    expect(has_lock_only(own->dev));
    return status;
}

static int32_t activate(void *context)
{
    return driver_call(context, FAKE_ACTIVATE);
}

static int32_t deactivate(void *context)
{
    return driver_call(context, FAKE_DEACTIVATE);
}

static int32_t check(void *context)
{
    return driver_call(context, FAKE_CHECK);
}

static int32_t copy_to(void *context, uint32_t device_offset, const void *source, size_t bytes)
{
    struct fake_context *own = context;
    int32_t status = driver_call(context, FAKE_COPY_TO);

    if (status == FERRULE_OK) {
        memcpy(own->memory + device_offset, source, bytes);
    }
    return status;
}

static int32_t copy_from(void *context, void *destination, uint32_t device_offset, size_t bytes)
{
    const struct fake_context *own = context;
    int32_t status = driver_call(context, FAKE_COPY_FROM);

    if (status == FERRULE_OK) {
        memcpy(destination, own->memory + device_offset, bytes);
    }
    return status;
}

const struct ferrule_driver *fake_driver(void)
{
    static const struct ferrule_driver driver = {
        .name = "fake",
        .is_passive = true,
        .activate = activate,
        .deactivate = deactivate,
        .check = check,
        .copy_to = copy_to,
        .copy_from = copy_from,
        .memory_bytes = 64,
    };

    return &driver;
}

const struct ferrule_driver *fake_no_driver(void)
{
    return &ferrule_no_driver;
}

static int32_t submit(void *context, const void *command)
{
    expect(command != NULL);
    return driver_call(context, FAKE_SUBMIT);
}

static int32_t submit_copy_to(void *context, uint32_t device_offset, const void *source,
                              size_t bytes)
{
    (void)device_offset;
    (void)source;
    (void)bytes;
    return driver_call(context, FAKE_SUBMIT_COPY_TO);
}

static int32_t submit_copy_from(void *context, void *destination, uint32_t device_offset,
                                size_t bytes)
{
    (void)device_offset;
    (void)destination;
    (void)bytes;
    return driver_call(context, FAKE_SUBMIT_COPY_FROM);
}

static bool is_over(void *context)
{
    const struct fake_context *own = context;

    (void)driver_call(context, FAKE_LOOK);
    return fake.now_us >= own->over_us;
}

static uint32_t poll_us(void *context)
{
    const struct fake_context *own = context;

    return own->poll_us;
}

static int32_t finish(void *context)
{
    return driver_call(context, FAKE_FINISH);
}

static int32_t stop(void *context)
{
    return driver_call(context, FAKE_ABORT);
}

static bool is_stopped(void *context)
{
    return driver_call(context, FAKE_STOPPED) == FERRULE_OK;
}

const struct ferrule_driver *fake_beside_driver(void)
{
    static const struct ferrule_driver driver = {
        .name = "beside",
        .activate = activate,
        .deactivate = deactivate,
        .check = check,
        .copy_to = copy_to,
        .copy_from = copy_from,
        .memory_bytes = 64,
        .submit = submit,
        .submit_copy_to = submit_copy_to,
        .submit_copy_from = submit_copy_from,
        .is_over = is_over,
        .poll_us = poll_us,
        .finish = finish,
        .abort = stop,
        .is_stopped = is_stopped,
        .depth = 2,
        .timeout_us = 500,
    };

    return &driver;
}

const struct ferrule_driver *fake_bare_driver(void)
{
    static const struct ferrule_driver driver = {.name = "bare", .is_passive = true};

    return &driver;
}
