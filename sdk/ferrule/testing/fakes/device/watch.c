/* SPDX-License-Identifier: Apache-2.0 */
/* The device API's functions that change the state of a handle: each calls the function of device.c
 * of the same name, whose prefix the build changes to ferrule_watched_, and notes the new state. */
#include "fake.h"
#include "ferrule/platform.h"

static void note(const ferrule_device_t *dev)
{
    const struct ferrule_device_core *core = (const struct ferrule_device_core *)dev;
    if (core == NULL || core->self != core) {
        return; /* not a handle */
    }
    fake_lock();
    const bool is_named = core->driver != NULL && core->driver->name != NULL;
    fake_handle_changed(core, is_named ? core->driver->name : "", core->activations, core->is_open);
    fake_unlock();
}

#define WATCHED(name)                                                                              \
    int32_t ferrule_watched_device_##name(ferrule_device_t *dev);                                  \
    int32_t ferrule_device_##name(ferrule_device_t *dev)                                           \
    {                                                                                              \
        const int32_t status = ferrule_watched_device_##name(dev);                                 \
        note(dev);                                                                                 \
        return status;                                                                             \
    }

WATCHED(activate)
WATCHED(deactivate)
WATCHED(open)
WATCHED(close)

int32_t ferrule_watched_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                        struct ferrule_stop *stop);

int32_t ferrule_device_open_for(ferrule_device_t *dev, uint32_t timeout_us,
                                struct ferrule_stop *stop)
{
    const int32_t status = ferrule_watched_device_open_for(dev, timeout_us, stop);
    note(dev);
    return status;
}

int32_t ferrule_watched_device_init(ferrule_device_t *dev);

int32_t ferrule_device_init(ferrule_device_t *dev)
{
    const int32_t status = ferrule_watched_device_init(dev);
    if (status == FERRULE_OK) {
        fake_handle_initialised(dev);
    }
    return status;
}
