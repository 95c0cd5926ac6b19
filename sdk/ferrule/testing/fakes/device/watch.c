/* SPDX-License-Identifier: Apache-2.0 */
/* The device API's functions that change the state of a handle, or begin and end commands: each
 * calls the function of device.c or command.c of the same name, whose prefix the build changes to
 * ferrule_watched_, notes the new state, and tells the test. */
#include "fake.h"
#include "ferrule/platform.h"

static void note(const ferrule_device_t *dev, bool opened)
{
    const struct ferrule_device_core *core = (const struct ferrule_device_core *)dev;
    if (core == NULL || core->self != core) {
        return; /* not a handle */
    }
    fake_lock();
    const bool is_named = core->driver != NULL && core->driver->name != NULL;
    const char *driver = is_named ? core->driver->name : "";
    if (!core->is_open) {
        fake_give_back(&core->is_open);
    } else if (opened) {
        fake_hold(&core->is_open, "the device handle %p of the driver '%s' is open, by thread %u",
                  (const void *)core, driver, (unsigned)fake_thread());
    }
    if (core->activations == 0u) {
        fake_give_back(&core->activations);
    } else {
        fake_hold(&core->activations,
                  "the device handle %p of the driver '%s' is activated, %u times",
                  (const void *)core, driver, (unsigned)core->activations);
    }
    fake_unlock();
}

static const struct ferrule_device_core *core_of(const ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = (const struct ferrule_device_core *)dev;
    return core != NULL && core->self == core ? core : NULL;
}

/* Tells the test that a call begins or has returned. */
static void tell(const ferrule_device_t *dev, enum ferrule_fake_device_call which, bool ended,
                 int32_t status)
{
    const struct ferrule_device_core *core = core_of(dev);
    if (core == NULL || core->driver == NULL) {
        return;
    }
    const struct ferrule_fake_device device = {
        .handle = (uintptr_t)core,
        .call = which,
        .ended = ended ? 1u : 0u,
        .status = status,
        .submits = core->driver->submit != NULL || core->driver->submit_copy_to != NULL ? 1u : 0u,
        .depth = core->driver->depth,
        .in_flight = core->in_flight,
        .is_open = core->is_open ? 1u : 0u,
        .is_lost = core->health == (uint32_t)FERRULE_DEVICE_LOST ? 1u : 0u,
    };
    fake_tell_device(&device);
}

#define WATCHED(name, which, parameters, arguments)                                                \
    int32_t ferrule_watched_device_##name parameters;                                              \
    int32_t ferrule_device_##name parameters                                                       \
    {                                                                                              \
        tell(dev, which, false, FERRULE_OK);                                                       \
        const int32_t status = ferrule_watched_device_##name arguments;                            \
        note(dev, (which) == FERRULE_FAKE_OPENS && status == FERRULE_OK);                          \
        tell(dev, which, true, status);                                                            \
        return status;                                                                             \
    }

WATCHED(activate, FERRULE_FAKE_ACTIVATES, (ferrule_device_t * dev), (dev))
WATCHED(deactivate, FERRULE_FAKE_DEACTIVATES, (ferrule_device_t * dev), (dev))
WATCHED(recover, FERRULE_FAKE_RECOVERS, (ferrule_device_t * dev), (dev))
WATCHED(open, FERRULE_FAKE_OPENS, (ferrule_device_t * dev), (dev))
WATCHED(open_for, FERRULE_FAKE_OPENS,
        (ferrule_device_t * dev, uint32_t timeout_us, struct ferrule_stop *stop),
        (dev, timeout_us, stop))
WATCHED(close, FERRULE_FAKE_CLOSES, (ferrule_device_t * dev), (dev))
WATCHED(abort, FERRULE_FAKE_ABORTS, (ferrule_device_t * dev), (dev))
WATCHED(submit, FERRULE_FAKE_SUBMITS,
        (ferrule_device_t * dev, const struct ferrule_driver *driver, const void *command),
        (dev, driver, command))
WATCHED(submit_copy_to, FERRULE_FAKE_SUBMITS,
        (ferrule_device_t * dev, uint32_t device_offset, const void *source, size_t bytes),
        (dev, device_offset, source, bytes))
WATCHED(submit_copy_from, FERRULE_FAKE_SUBMITS,
        (ferrule_device_t * dev, void *destination, uint32_t device_offset, size_t bytes),
        (dev, destination, device_offset, bytes))
WATCHED(wait, FERRULE_FAKE_WAITS,
        (ferrule_device_t * dev, bool (*is_over)(void *context), uint32_t timeout_us),
        (dev, is_over, timeout_us))
WATCHED(finish, FERRULE_FAKE_FINISHES, (ferrule_device_t * dev, uint32_t timeout_us),
        (dev, timeout_us))

int32_t ferrule_watched_device_init(ferrule_device_t *dev);

int32_t ferrule_device_init(ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = (const struct ferrule_device_core *)dev;
    const int32_t status = ferrule_watched_device_init(dev);
    if (status == FERRULE_OK) {
        fake_lock();
        fake_forget_object(&core->is_open);
        fake_forget_object(&core->activations);
        fake_unlock();
    }
    return status;
}
