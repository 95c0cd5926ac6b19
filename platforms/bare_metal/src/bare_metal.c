/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/bare_metal.h"

#include <stddef.h>

#include "ferrule/port.h"
#include "ferrule/sleep.h"

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");

int32_t ferrule_device_bind(ferrule_device_t *dev, void *base,
                            const struct ferrule_bare_metal_power *power,
                            const struct ferrule_driver *driver, void *context)
{
    int32_t status = ferrule_device_may_bind(dev);

    if (status != FERRULE_OK) {
        return status;
    }
    dev->base = base;
    dev->power = power;
    dev->core.can_cut = power != NULL && power->cut != NULL;
    return ferrule_device_bind_driver(dev, driver, context);
}

bool ferrule_platform_in_interrupt(void)
{
    return ferrule_port_in_interrupt();
}

const void *ferrule_platform_thread(void)
{
    return ferrule_port_thread();
}

int32_t ferrule_platform_priority(void)
{
    return 0; /* no task waits for another */
}

void ferrule_platform_yield(void)
{
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
    dev->base = NULL;
    dev->power = NULL;
    dev->locked = false;
    dev->notified = false;
    return FERRULE_OK;
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
    ferrule_platform_unguard(dev);
    return FERRULE_OK;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
    uint32_t masked = ferrule_port_critical_enter();

    dev->masked = masked; /* not earlier: the interrupted code may hold the guard */
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
    ferrule_port_critical_exit(dev->masked);
}

uint32_t ferrule_platform_open_timeout_us(void)
{
    return 0; /* no other task runs meanwhile */
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
    uint32_t masked = ferrule_port_critical_enter();
    bool taken = dev->locked;

    (void)timeout_us;
    dev->locked = true;
    ferrule_port_critical_exit(masked);
    return taken ? FERRULE_ERR_BUSY : FERRULE_OK;
}

int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
    dev->locked = false;
    return FERRULE_OK;
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
    (void)dev; /* the device is always ready */
    return FERRULE_OK;
}

int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
    const struct ferrule_bare_metal_power *power = dev->power;
    int32_t (*hook)(void *context);

    if (power == NULL) {
        return FERRULE_OK;
    }
    hook = on ? power->on : power->off;
    return hook == NULL ? FERRULE_OK : hook(power->context);
}

int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
    const struct ferrule_bare_metal_power *power = dev->power;

    return dev->core.can_cut ? power->cut(power->context) : FERRULE_ERR_UNSUPPORTED;
}

uint32_t ferrule_platform_now_us(void)
{
    return ferrule_sleep_now_us();
}

int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
    return ferrule_sleep_until(&dev->notified, timeout_us);
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
    dev->notified = true;
}
