/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's side of devices that have a Ferrule driver: a devicetree node becomes a struct device,
 * so that its readiness can be checked and its power domain managed at run time. The Ferrule driver
 * handles registers and interrupts.
 */
#include <errno.h>
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/init.h>
#include <zephyr/pm/device.h>

#include "ferrule/platform/zephyr_accelerator.h"

struct accelerator_config {
	uintptr_t base;
};

static uintptr_t accelerator_base(const struct device *device)
{
	const struct accelerator_config *config = device->config;

	return config->base;
}

static FERRULE_ACCELERATOR_API(accelerator_api) = {.base = accelerator_base};

#if defined(CONFIG_PM_DEVICE)
/* Only the power domain is switched, and Zephyr does that around these calls. */
static int on_power(const struct device *device, enum pm_device_action action)
{
	ARG_UNUSED(device);
	switch (action) {
	case PM_DEVICE_ACTION_RESUME:
	case PM_DEVICE_ACTION_SUSPEND:
	case PM_DEVICE_ACTION_TURN_ON: /* Zephyr 3.5 treats -ENOTSUP here as a failure */
	case PM_DEVICE_ACTION_TURN_OFF:
		return 0;
	default:
		return -ENOTSUP;
	}
}
#endif

static int start(const struct device *device)
{
#if defined(CONFIG_PM_DEVICE)
	return pm_device_driver_init(device, on_power);
#else
	ARG_UNUSED(device);
	return 0;
#endif
}

#define ACCELERATOR(node, configuration, api)                                                      \
	PM_DEVICE_DT_DEFINE(node, on_power);                                                       \
	DEVICE_DT_DEFINE(node, start, PM_DEVICE_DT_GET(node), NULL, configuration, POST_KERNEL,    \
			 CONFIG_FERRULE_ACCELERATOR_INIT_PRIORITY, api);

#define CONFIG_OF(node) UTIL_CAT(config_, DT_DEP_ORD(node))

#define MMIO_ACCELERATOR(node)                                                                     \
	static const struct accelerator_config CONFIG_OF(node) = {.base = DT_REG_ADDR(node)};      \
	ACCELERATOR(node, &CONFIG_OF(node), &accelerator_api)

#define SOFT_DEVICE(node) ACCELERATOR(node, NULL, NULL)

DT_FOREACH_STATUS_OKAY(ferrule_mmio_accelerator, MMIO_ACCELERATOR)
DT_FOREACH_STATUS_OKAY(ferrule_soft_device, SOFT_DEVICE)
