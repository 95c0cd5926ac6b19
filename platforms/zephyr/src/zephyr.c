/* SPDX-License-Identifier: Apache-2.0 */
#include "ferrule/platform/zephyr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/pm/device.h>
#include <zephyr/pm/device_runtime.h>

#include "ferrule/platform/zephyr_status.h"
#include "ferrule/tick.h"

LOG_MODULE_DECLARE(ferrule, CONFIG_FERRULE_LOG_LEVEL);

_Static_assert(offsetof(struct ferrule_device, core) == 0, "device.c finds its part at the start");
_Static_assert(CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS <= FERRULE_WAIT_MOST / 1000u,
	       "CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS is too long");

bool ferrule_platform_in_interrupt(void)
{
	return k_is_in_isr();
}

const void *ferrule_platform_thread(void)
{
	return k_current_get();
}

int32_t ferrule_platform_priority(void)
{
	return -k_thread_priority_get(k_current_get()); /* lower numbers are more urgent */
}

void ferrule_platform_yield(void)
{
	k_yield();
}

int32_t ferrule_platform_init(ferrule_device_t *dev)
{
	dev->zephyr_device = NULL;
	(void)memset(&dev->guard, 0, sizeof(dev->guard)); /* has no members on a single core */

	const int error = k_mutex_init(&dev->lock);

	if (error == 0) {
		(void)k_sem_init(&dev->notified, 0u, 1u); /* fails only for a limit of 0 */
	}
	return ferrule_zephyr_status(error);
}

int32_t ferrule_platform_destroy(ferrule_device_t *dev)
{
#if defined(CONFIG_OBJ_CORE_MUTEX)
	k_obj_core_unlink(K_OBJ_CORE(&dev->lock)); /* the kernel has a list of all mutexes */
#endif
#if defined(CONFIG_OBJ_CORE_SEM)
	k_obj_core_unlink(K_OBJ_CORE(&dev->notified));
#endif
	dev->zephyr_device = NULL;
	ferrule_platform_unguard(dev);
	return FERRULE_OK;
}

void ferrule_platform_guard(ferrule_device_t *dev)
{
	const k_spinlock_key_t key = k_spin_lock(&dev->guard);

	dev->guard_key = key; /* not earlier: another thread may hold the guard */
}

void ferrule_platform_unguard(ferrule_device_t *dev)
{
	k_spin_unlock(&dev->guard, dev->guard_key);
}

uint32_t ferrule_platform_open_timeout_us(void)
{
	return CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS * 1000u;
}

/* Whether the kernel's counter of cycles measures less than a tick: it is up to a cycle behind. The
 * timer of a slow clock, such as an RTC, has ticks as short as its cycles.
 */
static bool counts_microseconds(void)
{
	return (uint32_t)sys_clock_hw_cycles_per_sec() >= USEC_PER_SEC;
}

/* The counter of cycles wraps, but the ticks tell how often. */
static uint32_t cycles_us(void)
{
	static struct k_spinlock lock;
	static struct ferrule_tick_clock clock;
	static int64_t last_tick;
	static uint32_t last_cycle;
	const uint32_t rate = (uint32_t)sys_clock_hw_cycles_per_sec();
	const k_spinlock_key_t key = k_spin_lock(&lock);
	const int64_t tick = k_uptime_ticks();
	const uint32_t cycle = k_cycle_get_32();
	const uint32_t rest = cycle - last_cycle;
	const uint64_t about =
		(uint64_t)(tick - last_tick) * (rate / CONFIG_SYS_CLOCK_TICKS_PER_SEC);
	const uint64_t wraps = (about - rest + BIT64(31)) >> 32;
	const uint32_t now = ferrule_tick_add(&clock, (wraps << 32) + rest, rate);

	last_tick = tick;
	last_cycle = cycle;
	k_spin_unlock(&lock, key);
	return now;
}

uint32_t ferrule_platform_now_us(void)
{
	return counts_microseconds() ? cycles_us()
				     : (uint32_t)k_ticks_to_us_floor64((uint64_t)k_uptime_ticks());
}

/* A timeout of n ticks lasts at least n ticks and at most n + 1. The result ends at most a tick
 * later than `microseconds` (not 0) from now, or earlier: the caller then waits for the rest. Where
 * the counter cannot measure this, it ends up to two ticks later.
 */
static k_timeout_t timeout_of(uint32_t microseconds)
{
	const uint32_t ticks = k_us_to_ticks_floor32(microseconds);

	if (!counts_microseconds()) {
		return K_USEC(microseconds);
	}
#if defined(CONFIG_TIMEOUT_64BIT)
	if (ticks == 0u) {
		return K_TIMEOUT_ABS_TICKS(k_uptime_ticks() + 1); /* the next one */
	}
#endif
	return K_TICKS(MAX(ticks, 1u));
}

int32_t ferrule_platform_lock(ferrule_device_t *dev, uint32_t timeout_us)
{
	const uint32_t begin = timeout_us == 0u ? 0u : ferrule_platform_now_us();
	uint32_t passed = 0;
	int error;

	do {
		const k_timeout_t timeout =
			timeout_us == 0u ? K_NO_WAIT : timeout_of(timeout_us - passed);

		error = k_mutex_lock(&dev->lock, timeout);
		passed = error == -EAGAIN ? ferrule_platform_now_us() - begin : timeout_us;
	} while (passed < timeout_us);
	return ferrule_zephyr_status(error);
}

/* The kernel takes an inherited priority back, but lets the thread go on if no other one waits at
 * this moment: one that waits in slices may be between two of them.
 */
int32_t ferrule_platform_unlock(ferrule_device_t *dev)
{
	const int priority = k_thread_priority_get(k_current_get());
	const int error = k_mutex_unlock(&dev->lock);

	if (k_thread_priority_get(k_current_get()) != priority) {
		k_yield();
	}
	return ferrule_zephyr_status(error);
}

int32_t ferrule_platform_ready(const ferrule_device_t *dev)
{
	if (dev->zephyr_device != NULL && !device_is_ready(dev->zephyr_device)) {
		return FERRULE_ERR_UNAVAILABLE;
	}
	return FERRULE_OK;
}

/* Both calls succeed without effect if CONFIG_PM_DEVICE_RUNTIME is off. */
int32_t ferrule_platform_power(ferrule_device_t *dev, bool on)
{
	if (dev->zephyr_device == NULL) {
		return FERRULE_OK;
	}

	const int error = on ? pm_device_runtime_get(dev->zephyr_device)
			     : pm_device_runtime_put(dev->zephyr_device);

	if (error < 0) {
		LOG_ERR("%s: power %s: error %d", dev->zephyr_device->name, on ? "on" : "off",
			error);
	}
	return ferrule_zephyr_status(error);
}

/* A device that is suspended may still work; one that is off does not. It is off if nothing else
 * uses its power domain.
 */
int32_t ferrule_platform_cut(ferrule_device_t *dev)
{
	enum pm_device_state state = PM_DEVICE_STATE_ACTIVE;

	if (dev->zephyr_device == NULL) {
		return FERRULE_ERR_UNSUPPORTED;
	}

	const int error = pm_device_runtime_put(dev->zephyr_device);

	if (error != 0) {
		return ferrule_zephyr_status(error);
	}
	if (pm_device_state_get(dev->zephyr_device, &state) == 0 && state == PM_DEVICE_STATE_OFF) {
		LOG_WRN("%s did not stop and was switched off", dev->zephyr_device->name);
		return FERRULE_OK;
	}
	(void)pm_device_runtime_get(dev->zephyr_device); /* as before */
	LOG_ERR("%s did not stop and cannot be switched off", dev->zephyr_device->name);
	return FERRULE_ERR_UNSUPPORTED;
}

/* For less than a tick. */
static int32_t poll(ferrule_device_t *dev, uint32_t timeout_us)
{
	const uint32_t begin = k_cycle_get_32();
	const uint32_t cycles = k_us_to_cyc_ceil32(timeout_us);

	do {
		if (k_sem_take(&dev->notified, K_NO_WAIT) == 0) {
			return FERRULE_OK;
		}
		k_yield();
#if defined(CONFIG_ARCH_POSIX)
		k_busy_wait(1u); /* time stands still there while code runs */
#endif
	} while (k_cycle_get_32() - begin <= cycles);
	return FERRULE_ERR_TIMEOUT;
}

/* May end early: the caller waits for the rest. */
int32_t ferrule_platform_wait(ferrule_device_t *dev, uint32_t timeout_us)
{
	if (k_us_to_ticks_floor32(timeout_us) == 0u) {
		return poll(dev, timeout_us);
	}
	return ferrule_zephyr_status(k_sem_take(&dev->notified, timeout_of(timeout_us)));
}

void ferrule_platform_notify(ferrule_device_t *dev)
{
	k_sem_give(&dev->notified);
}

int32_t ferrule_device_bind(ferrule_device_t *dev, const struct device *zephyr_device,
			    const struct ferrule_driver *driver, void *context)
{
	const int32_t status = ferrule_device_may_bind(dev);

	if (status != FERRULE_OK) {
		return status;
	}
	if (zephyr_device == NULL) {
		return FERRULE_ERR_ARGUMENT;
	}
	if (!device_is_ready(zephyr_device)) {
		LOG_ERR("%s is not ready", zephyr_device->name);
		return FERRULE_ERR_UNAVAILABLE;
	}
	dev->zephyr_device = zephyr_device;
	dev->core.can_cut = pm_device_on_power_domain(zephyr_device);
	return ferrule_device_bind_driver(dev, driver, context);
}

int32_t ferrule_device_bind_soft(ferrule_device_t *dev, const struct ferrule_driver *driver,
				 void *context)
{
	const int32_t status = ferrule_device_may_bind(dev);

	if (status != FERRULE_OK) {
		return status;
	}
	dev->zephyr_device = NULL; /* an earlier failed bind may have set it */
	dev->core.can_cut = false;
	return ferrule_device_bind_driver(dev, driver, context);
}
