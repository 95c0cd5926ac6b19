/* SPDX-License-Identifier: Apache-2.0 */
/* The device API's functions that change the state of a handle: each calls the function of device.c
 * of the same name, whose prefix the build changes to ferrule_watched_, and notes the new state. */
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

#define WATCHED(name, opens)                                                                       \
    int32_t ferrule_watched_device_##name(ferrule_device_t *dev);                                  \
    int32_t ferrule_device_##name(ferrule_device_t *dev)                                           \
    {                                                                                              \
        const int32_t status = ferrule_watched_device_##name(dev);                                 \
        note(dev, (opens) && status == FERRULE_OK);                                                \
        return status;                                                                             \
    }

WATCHED(activate, false)
WATCHED(deactivate, false)
WATCHED(open, true)
WATCHED(close, false)

int32_t ferrule_watched_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                        struct ferrule_stop *stop);

int32_t ferrule_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                struct ferrule_stop *stop)
{
    const int32_t status = ferrule_watched_device_open_for(dev, timeout_us, stop);
    note(dev, status == FERRULE_OK);
    return status;
}

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
